package assistantscript

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses/media"
	"github.com/service-dev/service/internal/problem"
)

// talk is a conversation and what the app received.
type talk struct {
	t *testing.T
	*Conversation
	ms     int64
	events []map[string]any
	rows   []string
}

func newTalk(t *testing.T, rules string) *talk {
	t.Helper()
	script, err := Parse([]byte(`{"rules":[` + rules + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	k := &talk{t: t}
	k.Conversation = NewConversation(ConversationOptions{Script: script, Rate: 16000,
		Send: func(event []byte) {
			var e map[string]any
			if err := json.Unmarshal(event, &e); err != nil {
				t.Fatalf("event is not JSON: %v", err)
			}
			k.events = append(k.events, e)
		},
		Log: func(row string, payload any) {
			k.rows = append(k.rows, fmt.Sprintf("%s %s", strings.TrimPrefix(row, "assistant."), encode(payload)))
		}}, 0)
	return k
}

// send passes an event and returns the types of the answers, without repetitions.
func (k *talk) send(format string, args ...any) string {
	k.events = nil
	k.Receive(k.ms, fmt.Appendf(nil, format, args...))
	return k.types()
}

func (k *talk) types() string {
	var list []string
	for _, e := range k.events {
		list = append(list, e["type"].(string))
	}
	return strings.Join(slices.Compact(list), " ")
}

// find returns the first event of a type.
func (k *talk) find(kind string) map[string]any {
	k.t.Helper()
	for _, e := range k.events {
		if e["type"] == kind {
			return e
		}
	}
	k.t.Fatalf("no %s among %s", kind, k.types())
	return nil
}

// say appends ms of a tone, or of silence, in chunks of 100 ms, and returns the types of all answers.
func (k *talk) say(ms int, loud bool, words string) string {
	var all []string
	for at := 0; at < ms; at += 100 {
		pcm := make([]byte, 3200)
		if loud {
			for i := range 1600 {
				sample := 3 * media.Tone(int64(i), 16000, 300)
				pcm[2*i], pcm[2*i+1] = byte(sample), byte(uint16(sample)>>8)
			}
		}
		text := ""
		if at+100 >= ms {
			text = words
		}
		answer := k.send(`{"type":"input_audio_buffer.append","audio":%q,"transcript":%q}`,
			base64.StdEncoding.EncodeToString(pcm), text)
		k.ms += 100
		if answer != "" {
			all = append(all, answer)
		}
	}
	return strings.Join(all, " ")
}

const (
	helloRule = `{"when":{"contains":"hello"},"reply":{"text":"Hi there"}}`
	userTurn  = `{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`
	spoken    = "response.created response.output_item.added conversation.item.added response.content_part.added "
	ended     = " response.content_part.done conversation.item.done response.output_item.done response.done"
)

func TestConversation_AnswersTextTurn(t *testing.T) {
	k := newTalk(t, helloRule)
	if k.types() != "session.created" {
		t.Fatalf("began with %s", k.types())
	}
	if got := k.send(`{"type":"session.update","session":{"type":"realtime","output_modalities":["text"],"instructions":"Be brief."}}`); got != "session.updated" {
		t.Fatalf("session.update: %s", got)
	}
	if got := k.send(userTurn, "Hello?"); got != "conversation.item.added conversation.item.done" {
		t.Fatalf("item: %s", got)
	}
	want := spoken + "response.output_text.delta response.output_text.done" + ended
	if got := k.send(`{"type":"response.create"}`); got != want {
		t.Fatalf("response:\n%s, want\n%s", got, want)
	}
	if text := k.find("response.output_text.done")["text"]; text != "Hi there" {
		t.Fatalf("text %q", text)
	}
	usage := k.find("response.done")["response"].(map[string]any)["usage"].(map[string]any)
	if usage["input_tokens"] != 2.0 || usage["output_tokens"] != 2.0 || usage["total_tokens"] != 4.0 {
		t.Fatalf("usage %v", usage)
	}
}

func TestConversation_HearsAndSpeaks(t *testing.T) {
	k := newTalk(t, helloRule)
	k.send(`{"type":"session.update","session":{"audio":{"input":{"transcription":{"model":"any"}}}}}`)
	if got := k.say(700, true, "Hello glasses"); got != "input_audio_buffer.speech_started" {
		t.Fatalf("while speaking: %s", got)
	}
	if got := k.say(400, false, ""); got != "" {
		t.Fatalf("in the pause: %s", got)
	}
	k.say(100, false, "")
	want := "input_audio_buffer.speech_stopped input_audio_buffer.committed conversation.item.added " +
		"conversation.item.done conversation.item.input_audio_transcription.completed " + spoken +
		"response.output_audio_transcript.delta response.output_audio.delta response.output_audio_transcript.delta " +
		"response.output_audio.delta response.output_audio.done response.output_audio_transcript.done" + ended
	if got := k.types(); got != want {
		t.Fatalf("turn:\n%s, want\n%s", got, want)
	}
	if heard := k.find("conversation.item.input_audio_transcription.completed")["transcript"]; heard != "Hello glasses" {
		t.Fatalf("heard %q", heard)
	}
	var played []byte
	for _, e := range k.events {
		if e["type"] == "response.output_audio.delta" {
			pcm, err := base64.StdEncoding.DecodeString(e["delta"].(string))
			if err != nil || len(pcm) > 3200 {
				t.Fatalf("delta of %d bytes, %v", len(pcm), err)
			}
			played = append(played, pcm...)
		}
	}
	if want := voiceOf("Hi there", 16000).pcm(0, 8*msPerCharacter); !bytes.Equal(played, want) {
		t.Fatalf("%d bytes of sound, want %d of the voice", len(played), len(want))
	}
	if want := []string{`started {"model":"script","sampleRate":16000}`, `heard {"text":"Hello glasses","audioMs":1200}`,
		`said {"text":"Hi there","afterMs":0,"audioMs":480,"afterSpeechMs":500}`}; !slices.Equal(k.rows, want) {
		t.Fatalf("rows %q, want %q", k.rows, want)
	}
	if got := k.send(`{"type":"conversation.item.truncate","item_id":"item_x","content_index":0,"audio_end_ms":1}`); got != "error" {
		t.Fatalf("truncating an unknown item: %s", got)
	}
}

// The last word may begin within the last delta of the sound.
func TestConversation_SaysEveryWord(t *testing.T) {
	for _, text := range []string{"I have 2", "a b", "a", "one two three four"} {
		k := newTalk(t, `{"when":{"always":true},"reply":{"text":"`+text+`"}}`)
		k.send(userTurn, "Tell me")
		k.send(`{"type":"response.create"}`)
		said := ""
		for _, e := range k.events {
			if e["type"] == "response.output_audio_transcript.delta" {
				said += e["delta"].(string)
			}
		}
		if done := k.find("response.output_audio_transcript.done")["transcript"]; said != text || done != text {
			t.Errorf("said %q, transcript %q, want %q", said, done, text)
		}
	}
}

// One event of the app may contain several turns.
func TestConversation_HearsTwoTurnsInOneEvent(t *testing.T) {
	k := newTalk(t, helloRule+`,{"when":{"always":true},"reply":{"text":"Yes"}}`)
	k.send(`{"type":"session.update","session":{"output_modalities":["text"]}}`)
	var pcm []byte
	for range 2 {
		for i := range 3200 {
			pcm = binary.LittleEndian.AppendUint16(pcm, uint16(3*media.Tone(int64(i), 16000, 300)))
		}
		pcm = append(pcm, make([]byte, 2*9600)...) // 600 ms of silence
	}
	got := k.send(`{"type":"input_audio_buffer.append","audio":%q}`, base64.StdEncoding.EncodeToString(pcm))
	if n := strings.Count(got, "input_audio_buffer.committed"); n != 2 {
		t.Errorf("%d turns, want 2: %s", n, got)
	}
}

func TestConversation_IsInterrupted(t *testing.T) {
	k := newTalk(t, `{"when":{"always":true},"reply":{"text":"`+strings.Repeat("word ", 100)+`"}}`)
	k.send(userTurn, "Tell me")
	k.send(`{"type":"response.create"}`)
	item := k.find("response.output_item.added")["item"].(map[string]any)["id"]
	sent := k.types()
	if strings.Contains(sent, "response.done") {
		t.Fatal("30 seconds of sound were sent at once")
	}
	if at, ok := k.Due(); !ok || at != partEveryMs {
		t.Fatalf("the next part is due at %d (%t)", at, ok)
	}
	if got := k.say(100, true, ""); !strings.HasPrefix(got, "input_audio_buffer.speech_started response.output_audio.done") ||
		!strings.HasSuffix(got, "response.done") {
		t.Fatalf("interruption: %s", got)
	}
	response := k.find("response.done")["response"].(map[string]any)
	if response["status"] != "cancelled" || response["status_details"].(map[string]any)["reason"] != "turn_detected" {
		t.Fatalf("response %v", response)
	}
	for _, test := range []struct {
		ms   int64
		want string
	}{{0, "error"}, {10_001, "error"}, {1830, "conversation.item.truncated"}, {1831, "error"}} {
		got := k.send(`{"type":"conversation.item.truncate","item_id":%q,"content_index":0,"audio_end_ms":%d}`, item, test.ms)
		if got != test.want {
			t.Errorf("truncate to %d ms: %s, want %s", test.ms, got, test.want)
		}
	}
	if last := k.rows[len(k.rows)-1]; last != `interrupted {"playedMs":1830,"audioMs":10000}` {
		t.Fatalf("last row %s", last)
	}
}

func TestConversation_CallsToolsAndWaits(t *testing.T) {
	k := newTalk(t, `{"when":{"contains":"milk"},"reply":{"toolCall":{"name":"add","arguments":{"item":"milk"}},"delayMs":800}},
		{"when":{"toolResult":"add"},"reply":{"text":"Added"}}`)
	k.send(userTurn, "buy milk")
	if got := k.send(`{"type":"response.create"}`); got != "error" ||
		k.find("error")["error"].(map[string]any)["code"] != problem.CodeToolNotOffered {
		t.Fatalf("a tool that is not offered: %s", got)
	}
	k.send(`{"type":"session.update","session":{"output_modalities":["text"],"tools":[{"type":"function","name":"add"}]}}`)
	if got := k.send(`{"type":"response.create"}`); got != "response.created" {
		t.Fatalf("before the delay: %s", got)
	}
	if got := k.send(`{"type":"response.create"}`); got != "error" {
		t.Fatalf("second response: %s", got)
	}
	k.events = nil
	k.Advance(799)
	if k.events != nil {
		t.Fatalf("too early: %s", k.types())
	}
	k.Advance(800)
	k.ms = 800
	call := k.find("response.function_call_arguments.done")
	if call["name"] != "add" || call["arguments"] != `{"item":"milk"}` || !slices.Contains(k.rows, `tool_called {"name":"add","arguments":{"item":"milk"}}`) {
		t.Fatalf("call %v, rows %q", call, k.rows)
	}
	if got := k.send(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"other","output":"ok"}}`); got != "error" {
		t.Fatalf("result of an unknown call: %s", got)
	}
	k.send(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":%q,"output":"ok"}}`, call["call_id"])
	k.send(`{"type":"response.create"}`)
	if text := k.find("response.output_text.done")["text"]; text != "Added" {
		t.Fatalf("answer %q", text)
	}
}

func TestConversation_RefusesMistakes(t *testing.T) {
	for _, test := range []struct{ event, code string }{
		{`{`, "invalid_json"},
		{`{"type":"session.update","type":"x"}`, "invalid_json"},
		{`{"type":"session.destroy","event_id":"mine"}`, "invalid_value"},
		{`{"type":"session.update"}`, "invalid_value"},
		{`{"type":"session.update","session":{"output_modalities":["video"]}}`, "invalid_value"},
		{`{"type":"session.update","session":{"audio":{"input":{"format":{"type":"audio/pcm","rate":8000}}}}}`, "invalid_value"},
		{`{"type":"input_audio_buffer.append","audio":"AAA="}`, ""},
		{`{"type":"input_audio_buffer.append","audio":"AA=="}`, "invalid_value"},
		{`{"type":"input_audio_buffer.commit"}`, "input_audio_buffer_commit_empty"},
		{`{"type":"response.create"}`, "invalid_value"},
		{`{"type":"response.create","response":{"conversation":"none"}}`, "invalid_value"},
		{`{"type":"response.cancel"}`, "response_cancel_not_active"},
		{`{"type":"conversation.item.create"}`, "invalid_value"},
		{`{"type":"conversation.item.delete","item_id":"none"}`, "invalid_value"},
	} {
		k := newTalk(t, helloRule)
		got := k.send("%s", test.event)
		code := ""
		if got == "error" {
			code = k.find("error")["error"].(map[string]any)["code"].(string)
		}
		if code != test.code {
			t.Errorf("%s: %s with code %q, want %q", test.event, got, code, test.code)
		}
	}
}

func TestConversation_FollowsManualTurns(t *testing.T) {
	k := newTalk(t, helloRule)
	k.send(`{"type":"session.update","session":{"audio":{"input":{"turn_detection":null}}}}`)
	if got := k.say(1000, true, "hello") + k.say(1000, false, ""); got != "" {
		t.Fatalf("without turn detection: %s", got)
	}
	if got := k.send(`{"type":"input_audio_buffer.commit"}`); got != "input_audio_buffer.committed conversation.item.added conversation.item.done" {
		t.Fatalf("commit: %s", got)
	}
	k.send(`{"type":"response.create"}`)
	if said := k.find("response.output_audio_transcript.done")["transcript"]; said != "Hi there" {
		t.Fatalf("said %q", said)
	}
}

func FuzzConversation(f *testing.F) {
	for _, e := range []string{`{"type":"response.create"}`, fmt.Sprintf(userTurn, "hello"),
		`{"type":"session.update","session":{"tools":[{"type":"function","name":"add"}]}}`,
		`{"type":"input_audio_buffer.append","audio":"AAAA"}`, `{"type":"response.cancel"}`} {
		f.Add(e, e, int64(10))
	}
	script, err := Parse([]byte(`{"rules":[` + helloRule + `]}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, first, second string, ms int64) {
		ms &= 0xFFFF
		c := NewConversation(ConversationOptions{Script: script, Rate: 24000, Log: func(string, any) {},
			Send: func(event []byte) {
				if !json.Valid(event) {
					t.Fatalf("invalid event %s", event)
				}
			}}, 0)
		c.Receive(0, []byte(first))
		c.Receive(ms, []byte(second))
		for range 100 {
			at, ok := c.Due()
			if !ok {
				break
			}
			c.Advance(at)
		}
	})
}

// An app that never ends its turn does not fill the memory with what was heard.
func TestConversation_BoundsWhatItHears(t *testing.T) {
	k := newTalk(t, helloRule)
	k.send(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":null}}}}`)
	for range 100 {
		k.say(100, true, strings.Repeat("word ", 100))
	}
	if got := len(strings.Join(k.listener.words, " ")); got > maxMatched || got < maxMatched-1 {
		t.Errorf("the words have %d bytes, want %d", got, maxMatched)
	}
}
