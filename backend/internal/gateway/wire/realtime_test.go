package wire

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/internal/problem"
)

func rules() *RealtimeRules {
	return NewRealtimeRules(1000, 4000, 10, map[string]string{"warm": "marin"})
}

// updateID matches the random event_id that the gateway gives to an update.
var updateID = regexp.MustCompile(`"update_[A-Z2-7]{26}"`)

// An app that knew the event_id of its update could let another of its events fail with it, and the update's
// instructions would never count.
func TestRealtime_UpdateIDsDiffer(t *testing.T) {
	var ids [2]string
	for i := range ids {
		e, err := rules().Client([]byte(`{"type":"session.update","session":{"type":"realtime"}}`))
		if ids[i] = string(updateID.Find(e.Body)); err != nil || ids[i] == "" {
			t.Fatalf("got %s, %v, want an event with an ID", e.Body, err)
		}
	}
	if ids[0] == ids[1] {
		t.Errorf("two conversations have an update with the ID %s", ids[0])
	}
}

func TestRealtime_UnconfirmedUpdates(t *testing.T) {
	r, n := rules(), 0
	for ; n < 1000; n++ {
		if _, err := r.Client([]byte(`{"type":"session.update","session":{"type":"realtime"}}`)); err != nil {
			break
		}
	}
	if n != 100 {
		t.Errorf("%d updates were accepted without a confirmation, want 100", n)
	}
}

// TestRealtime_Client compares each allowed event with what the provider receives, as JSON.
func TestRealtime_Client(t *testing.T) {
	const limits = `"max_output_tokens":1000,"truncation":{"type":"retention_ratio","retention_ratio":0.8,` +
		`"token_limits":{"post_instructions":4000}}`
	for name, c := range map[string]struct{ given, want string }{
		"sound": {`{"type":"input_audio_buffer.append","event_id":"e","audio":"AAA="}`,
			`{"type":"input_audio_buffer.append","audio":"AAA=","event_id":"e"}`},
		"sound with its words": {`{"audio":"AAA=","transcript":"hi","type":"input_audio_buffer.append"}`,
			`{"type":"input_audio_buffer.append","audio":"AAA="}`},
		"sound, type far behind": {`{"audio":"` + strings.Repeat("A", 4000) + `","type":"input_audio_buffer.append"}`,
			`{"audio":"` + strings.Repeat("A", 4000) + `","type":"input_audio_buffer.append"}`},
		"model changed": {`{"type":"session.update","session":{"type":"realtime","model":"dear","truncation":"disabled"}}`,
			`{"type":"session.update","event_id":"update_1","session":{"type":"realtime",` + limits + `}}`},
		"type last": {`{"session":{"type":"realtime","max_output_tokens":"inf"},"type":"session.update"}`,
			`{"session":{"type":"realtime",` + limits + `},"type":"session.update","event_id":"update_1"}`},
		"voice": {`{"type":"session.update","session":{"type":"realtime","audio":{"output":{"voice":"warm"}}}}`,
			`{"type":"session.update","event_id":"update_1","session":{"type":"realtime","audio":{"output":{"voice":"marin"}},` + limits + `}}`},
		"automatic answers": {`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":` +
			`{"type":"semantic_vad","create_response":true}}}}}`,
			`{"type":"session.update","event_id":"update_1","session":{"type":"realtime","audio":{"input":{"turn_detection":` +
				`{"type":"semantic_vad","create_response":false}}},` + limits + `}}`},
		"no turn detection": {`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":null}}}}`,
			`{"type":"session.update","event_id":"update_1","session":{"type":"realtime","audio":{"input":{"turn_detection":null}},` + limits + `}}`},
		"answer": {`{"type":"response.create"}`, `{"type":"response.create","response":{"max_output_tokens":1000}}`},
		"answer with an ID": {`{"type":"response.create","event_id":"e","response":{"metadata":{"event_id":"e"}}}`,
			`{"type":"response.create","response":{"metadata":{"event_id":"e"},"max_output_tokens":1000}}`},
		"empty answer": {`{"type":"response.create","response":{}}`, `{"type":"response.create","response":{"max_output_tokens":1000}}`},
		"long answer": {`{"response":{"max_output_tokens":5000,"conversation":"none"},"type":"response.create"}`,
			`{"response":{"conversation":"none","max_output_tokens":1000},"type":"response.create"}`},
		"short answer": {`{"type":"response.create","response":{"max_output_tokens":5}}`,
			`{"type":"response.create","response":{"max_output_tokens":5}}`},
		"text": {`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"a\u0000b"}]}}`,
			`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"a\u0000b"}]}}`},
		"tool's result": {`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"c","output":"{}"}}`,
			`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"c","output":"{}"}}`},
		"truncation": {`{"type":"conversation.item.truncate","item_id":"i","content_index":0,"audio_end_ms":1200}`,
			`{"type":"conversation.item.truncate","item_id":"i","content_index":0,"audio_end_ms":1200}`},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := rules().Client([]byte(c.given))
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			body := updateID.ReplaceAll(e.Body, []byte(`"update_1"`))
			if err := errors.Join(json.Unmarshal(body, &got), json.Unmarshal([]byte(c.want), &want)); err != nil {
				t.Fatal(err, string(e.Body))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRealtime_Refused names the outcome of each event that must not reach the provider.
func TestRealtime_Refused(t *testing.T) {
	session := func(members string) string {
		return `{"type":"session.update","session":{"type":"realtime",` + members + `}}`
	}
	for name, c := range map[string]struct{ given, code, param string }{
		"forged receipt":   {`{"type":"response.done","response":{"id":"r","usage":{}}}`, problem.CodeUnsupportedParameter, "type"},
		"unknown event":    {`{"type":"transcription_session.update"}`, problem.CodeUnsupportedParameter, "type"},
		"no type":          {`{}`, problem.CodeUnsupportedParameter, "type"},
		"not JSON":         {`hello`, problem.CodeInvalidJSON, ""},
		"two types":        {`{"type":"input_audio_buffer.append","audio":"AA==","type":"response.create"}`, problem.CodeInvalidJSON, "type"},
		"event behind":     {`{"type":"input_audio_buffer.append","audio":"AA=="}{"type":"response.create"}`, problem.CodeInvalidJSON, ""},
		"sound not Base64": {`{"type":"input_audio_buffer.append","audio":"AA\""}`, problem.CodeInvalidValue, "audio"},
		"sound and more":   {`{"type":"input_audio_buffer.append","audio":"AA==","model":"x"}`, problem.CodeUnsupportedParameter, "model"},
		"stored prompt":    {session(`"prompt":{"id":"p"}`), problem.CodeUnsupportedParameter, "session.prompt"},
		"include":          {session(`"include":["item.input_audio_transcription.logprobs"]`), problem.CodeUnsupportedParameter, "session.include"},
		"mcp tool":         {session(`"tools":[{"type":"mcp","name":"x","server_url":"https://x"}]`), problem.CodeUnsupportedParameter, "session.tools[0].type"},
		"transcription":    {session(`"audio":{"input":{"transcription":{"model":"whisper-1"}}}`), problem.CodeUnsupportedParameter, "session.audio.input.transcription"},
		"other rate":       {session(`"audio":{"input":{"format":{"type":"audio/pcm","rate":48000}}}`), problem.CodeUnsupportedParameter, "session.audio.input.format.rate"},
		"idle timeout":     {session(`"audio":{"input":{"turn_detection":{"type":"server_vad","idle_timeout_ms":5000}}}`), problem.CodeUnsupportedParameter, "session.audio.input.turn_detection.idle_timeout_ms"},
		"provider's voice": {session(`"audio":{"output":{"voice":"marin"}}`), problem.CodeInvalidValue, "session.audio.output.voice"},
		"negative limit":   {session(`"max_output_tokens":-1`), problem.CodeInvalidValue, "session.max_output_tokens"},
		"model per answer": {`{"type":"response.create","response":{"model":"dear"}}`, problem.CodeUnsupportedParameter, "response.model"},
		"input per answer": {`{"type":"response.create","response":{"input":[]}}`, problem.CodeUnsupportedParameter, "response.input"},
		"picture": {`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_image","image_url":"x"}]}}`,
			problem.CodeUnsupportedParameter, "item.content[0].type"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := rules().Client([]byte(c.given))
			var field *FieldError
			if !errors.As(err, &field) || field.Code != c.code || field.Param != c.param {
				t.Errorf("got %s, %v (%+v), want %s at %q", e.Body, err, field, c.code, c.param)
			}
		})
	}
}

func TestRealtime_Responds(t *testing.T) {
	r := rules()
	for _, c := range []struct {
		turn string
		want bool
	}{
		{`null`, false}, {`{"type":"server_vad"}`, true}, {`{"type":"server_vad","create_response":false}`, false},
		{`{"type":"semantic_vad","create_response":true}`, true},
	} {
		_, err := r.Client([]byte(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":` +
			c.turn + `}}}}`))
		r.Updated()
		if err != nil || r.Responds != c.want {
			t.Errorf("%s: got %v, %v", c.turn, r.Responds, err)
		}
	}
}

// TestRealtime_Bound counts what an app adds to the input of an answer.
func TestRealtime_Bound(t *testing.T) {
	r := rules()
	before := r.InputBound(Input{}, 1_000_000)
	instructions := strings.Repeat("x", 1000)
	if _, err := r.Client([]byte(`{"type":"session.update","session":{"type":"realtime","instructions":"` + instructions + `"}}`)); err != nil {
		t.Fatal(err)
	}
	if got := r.InputBound(Input{}, 1_000_000) - before; got < 1000 {
		t.Errorf("instructions of 1000 bytes count %d tokens", got)
	}
	for _, rate := range []int64{10, 25} {
		r := NewRealtimeRules(1000, 4000, rate, nil)
		added := Input{}
		sound := strings.Repeat("A", 6400) // 100 ms
		for range 10 {
			for _, more := range []string{"", `,"transcript":null`} { // decoded in two ways
				e, err := r.Client([]byte(`{"type":"input_audio_buffer.append","audio":"` + sound + `"` + more + `}`))
				if err != nil {
					t.Fatal(err)
				}
				added = added.Plus(e.Input)
			}
		}
		if got := SoundTokens(added.Sound, rate); got != 2*rate || added.Text != 0 {
			t.Errorf("two seconds of sound at %d tokens a second count %d, and %d of text", rate, got, added.Text)
		}
		if got := r.InputBound(added, 1_000_000) - r.InputBound(Input{}, 1_000_000); got != 4*rate {
			t.Errorf("the bound on two seconds of sound at %d tokens a second is %d", rate, got)
		}
	}
	if got := r.InputBound(Input{Text: 1_000_000}, 32_000); got != 32_000 {
		t.Errorf("the bound exceeds the context: %d", got)
	}
}

// The bound counts the larger instructions until the provider confirms or refuses a change, and an update with an
// unknown voice changes nothing.
func TestRealtime_UpdateNotConfirmed(t *testing.T) {
	r := rules()
	set := func(instructions, more string) (ClientEvent, error) {
		return r.Client([]byte(`{"type":"session.update","event_id":"mine","session":{"type":"realtime","instructions":"` +
			instructions + `"` + more + `}}`))
	}
	long := strings.Repeat("x", 1000)
	if _, err := set(long, ""); err != nil {
		t.Fatal(err)
	}
	r.Updated()
	full := r.InputBound(Input{}, 1_000_000)
	if _, err := set("", `,"max_output_tokens":5,"audio":{"input":{"turn_detection":null},"output":{"voice":"none"}}`); err == nil {
		t.Fatal("an unknown voice was accepted")
	}
	r.Updated()
	if got := r.InputBound(Input{}, 1_000_000); got != full || !r.Responds || r.asked != 1000 {
		t.Errorf("a refused update changed the rules: bound %d, want %d", got, full)
	}
	e, err := set("", `,"max_output_tokens":5`)
	if err != nil || r.InputBound(Input{}, 1_000_000) != full {
		t.Errorf("an update that is not confirmed lowered the bound: %v", err)
	}
	var sent struct {
		ID string `json:"event_id"`
	}
	if err := json.Unmarshal(e.Body, &sent); err != nil {
		t.Fatal(err)
	}
	if id, ok := r.Refused(sent.ID); id != "mine" || !ok {
		t.Errorf("the update %q was not found", sent.ID)
	}
	if r.Updated(); r.InputBound(Input{}, 1_000_000) != full || r.output() != 1000 {
		t.Error("a refused update changed the rules")
	}
	if _, err := set("", ""); err != nil {
		t.Fatal(err)
	}
	if r.Updated(); r.InputBound(Input{}, 1_000_000) != full-1000 {
		t.Error("a confirmed update did not lower the bound")
	}
}

func TestRealtime_Receipt(t *testing.T) {
	done := func(usage string) string {
		return `{"type":"response.done","response":{"id":"r1","status":"completed","usage":` + usage + `}}`
	}
	for name, c := range map[string]struct {
		usage           string
		want            RealtimeUsage
		seen, malformed bool
	}{
		"all classes": {`{"total_tokens":160,"input_tokens":100,"output_tokens":60,"input_token_details":{"text_tokens":40,` +
			`"audio_tokens":60,"cached_tokens":30,"cached_tokens_details":{"text_tokens":10,"audio_tokens":20}},` +
			`"output_token_details":{"text_tokens":20,"audio_tokens":40}}`, RealtimeUsage{30, 10, 20, 40, 20, 40}, true, false},
		"pictures": {`{"input_tokens":30,"output_tokens":5,"input_token_details":{"text_tokens":10,"image_tokens":20,` +
			`"cached_tokens":8,"cached_tokens_details":{"text_tokens":3,"image_tokens":5}},"output_token_details":` +
			`{"text_tokens":5}}`, RealtimeUsage{22, 8, 5, 0, 0, 0}, true, false},
		"zero":                 {`{"total_tokens":0,"input_tokens":0,"output_tokens":0}`, RealtimeUsage{}, true, false},
		"no classes":           {`{"input_tokens":5,"output_tokens":7}`, RealtimeUsage{AudioIn: 5, AudioOut: 7}, true, false},
		"cached text, unsplit": {`{"input_tokens":9,"output_tokens":0,"input_token_details":{"text_tokens":9,"cached_tokens":4}}`, RealtimeUsage{TextIn: 5, TextCached: 4}, true, false},
		"null":                 {`null`, RealtimeUsage{}, false, false},
		"incomplete":           {`{"total_tokens":7}`, RealtimeUsage{}, false, false},
		"negative":             {`{"input_tokens":-1,"output_tokens":7}`, RealtimeUsage{}, false, true},
		"huge":                 {`{"input_tokens":1e18,"output_tokens":7}`, RealtimeUsage{}, false, true},
		"text":                 {`"many"`, RealtimeUsage{}, false, true},
		"parts above total":    {`{"input_tokens":5,"output_tokens":7,"input_token_details":{"text_tokens":6}}`, RealtimeUsage{}, false, true},
		"cached above input":   {`{"input_tokens":5,"output_tokens":7,"input_token_details":{"text_tokens":5,"cached_tokens":6}}`, RealtimeUsage{}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			e, ok := Server([]byte(done(c.usage)), 1_000_000)
			want := ServerEvent{Type: EventResponseDone, Known: true, Response: "r1", Status: "completed",
				Receipt: RealtimeReceipt{c.want, c.seen, c.malformed}}
			if diff := cmp.Diff(want, e); !ok || diff != "" {
				t.Error(ok, diff)
			}
		})
	}
}

func TestRealtime_Prices(t *testing.T) {
	p := RealtimePrices{4_000_000, 400_000, 16_000_000, 32_000_000, 400_000, 64_000_000}
	if got := p.Of(RealtimeUsage{30, 10, 20, 40, 20, 40}); got != 4292 {
		t.Errorf("got %d", got)
	}
	if got := p.Bound(5000, 1000); got != 224_000 {
		t.Errorf("got a bound of %d", got)
	}
}

func FuzzRealtimeClient(f *testing.F) {
	f.Add([]byte(`{"type":"input_audio_buffer.append","audio":"AAA="}`))
	f.Add([]byte(`{"session":{"type":"realtime","audio":{"output":{"voice":"warm"}}},"type":"session.update"}`))
	f.Add([]byte(`{"type":"response.create","response":{"metadata":{"a":1}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := rules().Client(data)
		if err != nil {
			return
		}
		var got struct {
			Type    string `json:"type"`
			Session *struct {
				Model *string `json:"model"`
				Most  int64   `json:"max_output_tokens"`
				Audio struct {
					Input struct {
						Turn *struct {
							Create *bool `json:"create_response"`
						} `json:"turn_detection"`
					} `json:"input"`
				} `json:"audio"`
			} `json:"session"`
			Response *struct {
				Most int64 `json:"max_output_tokens"`
			} `json:"response"`
		}
		if err := json.Unmarshal(e.Body, &got); err != nil || got.Type != e.Type {
			t.Fatalf("%q became %q: %v", data, e.Body, err)
		}
		if s := got.Session; s != nil && (s.Model != nil || s.Most < 1 || s.Most > 1000 ||
			s.Audio.Input.Turn != nil && (s.Audio.Input.Turn.Create == nil || *s.Audio.Input.Turn.Create)) {
			t.Fatalf("%q escaped the limits as %q", data, e.Body)
		}
		if r := got.Response; e.Type == EventResponseCreate && (r == nil || r.Most < 1 || r.Most > 1000) {
			t.Fatalf("%q escaped the limits as %q", data, e.Body)
		}
	})
}

func TestNameVoice(t *testing.T) {
	voices := map[string]string{"ember": "marin"}
	for given, want := range map[string]string{
		`{"type":"response.created","response":{"id":"r","audio":{"output":{"voice":"marin"}}}}`: `{"response":{"audio":` +
			`{"output":{"voice":"ember"}},"id":"r"},"type":"response.created"}`,
		`{"response":{"audio":{"output":{"format":1,"voice":"cedar"}}}}`: `{"response":{"audio":{"output":{"format":1}}}}`,
		`{"response":{"id":"r"}}`: `{"response":{"id":"r"}}`,
		`{"response":null}`:       `{"response":null}`,
		`not JSON`:                `not JSON`,
	} {
		if got := string(NameVoice([]byte(given), "response", voices)); got != want {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
	}
}

func FuzzRealtimeServer(f *testing.F) {
	f.Add([]byte(`{"type":"response.done","response":{"id":"r","usage":{"input_tokens":1,"output_tokens":2}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 1000
		e, ok := Server(data, most)
		u := e.Receipt.Usage
		for _, n := range []int64{u.TextIn, u.TextCached, u.TextOut, u.AudioIn, u.AudioCached, u.AudioOut} {
			if n < 0 || n > most || n > 0 && !e.Receipt.Seen {
				t.Fatalf("%q: %v %+v", data, ok, e.Receipt)
			}
		}
		NameModel(data, "voice")
		NameVoice(data, "session", map[string]string{"ember": "marin"})
		RedactStatus(data)
	})
}
