package gateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/test/llmtest"
)

// rowLog is a session without a script that collects the rows of its event log.
type rowLog struct {
	mu    sync.Mutex
	rows  []string
	ended chan struct{} // closed by the last row
}

func (*rowLog) Script(context.Context, string) (*assistantscript.Script, error) { return nil, nil }

func (l *rowLog) LogAssistant(_ context.Context, id, row string, payload any) {
	data, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows = append(l.rows, id+" "+strings.TrimPrefix(row, "assistant.")+" "+string(data))
	if row == glasses.RowAssistantEnded {
		close(l.ended)
	}
}

func (l *rowLog) wait(t *testing.T) []string {
	t.Helper()
	select {
	case <-l.ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the log has no last row")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rows
}

// The log says why there is no answer, without the provider's words.
func TestConversation_LogsWhyThereIsNoAnswer(t *testing.T) {
	for model, want := range map[string]string{
		llmtest.FailedAnswer:  `{"code":"provider_error","message":"the model failed to answer"}`,
		llmtest.RefusesAnswer: `{"code":"provider_error","message":"the model's provider refused to answer"}`,
		llmtest.Good:          `{"code":"no_credit",`,
	} {
		money := credit.USD
		if model == llmtest.Good {
			money = 1
		}
		w := newWorld(t, money, talkLimits)
		log := &rowLog{ended: make(chan struct{})}
		w.Sessions = log
		a := w.talkAs(t, model, time.Minute,
			Caller{Account: "acc", Project: "com.example.app", Key: "key", Session: "ses_1"})
		a.until("session.created")
		a.send(askAnswer)
		a.until("response.done", "error invalid_value", "error no_credit")
		_ = a.conn.Close(ws.StatusNormalClosure, "")
		rows := log.wait(t)
		if !slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(row, "ses_1 failed "+want) }) {
			t.Errorf("%s: got the rows %v, want failed %s", model, rows, want)
		}
	}
}

// A conversation with a session's token leaves rows in that session's event log. One with the key of a shipped app
// leaves none.
func TestConversation_Rows(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	log := &rowLog{ended: make(chan struct{})}
	w.Sessions = log
	shipped := w.talk(t, llmtest.Good, time.Minute)
	shipped.send(askText, askAnswer)
	shipped.until("response.done")
	_ = shipped.conn.Close(ws.StatusNormalClosure, "")
	a := w.talkAs(t, llmtest.DoneTwice, time.Minute,
		Caller{Account: "acc", Project: "com.example.app", Key: "key", Session: "ses_1"})
	a.send(askText, askAnswer)
	a.until("response.done")
	_ = a.conn.Close(ws.StatusNormalClosure, "")
	rows := log.wait(t)
	for i := range rows { // the provider is real
		if before, after, ok := strings.Cut(rows[i], `"afterMs":`); ok {
			_, rest, _ := strings.Cut(after, ",")
			rows[i] = before + `"afterMs":,` + rest
		}
	}
	if want := []string{
		`ses_1 started {"model":"voice-done-twice","sampleRate":24000}`,
		`ses_1 heard {"text":"Hi","audioMs":0}`,
		`ses_1 said {"text":"Hello there","afterMs":,"audioMs":0}`,
		`ses_1 ended {"reason":"closed"}`,
	}; !slices.Equal(rows, want) {
		t.Errorf("got rows\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}

// The rows of a provider's conversation have the words, the times and what was cut, as those of a script have.
func TestConversationRows_SpeechToolsAndInterruption(t *testing.T) {
	var rows []string
	at := time.Unix(0, 0)
	r := &conversationRows{now: func() time.Time { return at }, turns: map[string]int64{}, tools: map[string]string{},
		sounds: map[string]int64{}, log: func(row string, payload any) {
			data, err := json.Marshal(payload)
			rows = append(rows, fmt.Sprintf("%s %s %v", strings.TrimPrefix(row, "assistant."), data, err))
		}}
	server := func(kind, members string) { r.server(kind, []byte(`{"type":"`+kind+`"`+members+`}`)) }
	client := func(kind, members string) {
		r.client(wire.ClientEvent{Type: kind, Body: []byte(`{"type":"` + kind + `"` + members + `}`)})
	}
	pass := func(ms int) { at = at.Add(time.Duration(ms) * time.Millisecond) }
	sound := func(ms int) string { return base64.StdEncoding.EncodeToString(make([]byte, ms*48)) }

	client("input_audio_buffer.append", `,"audio":"`+sound(1200)+`"`)
	server("input_audio_buffer.speech_stopped", "")
	server("input_audio_buffer.committed", `,"item_id":"i1"`) // without transcription
	pass(20)
	r.begin()
	pass(80)
	server("response.output_item.added", `,"item":{"id":"f1","type":"function_call","name":"add_item"}`)
	server("response.function_call_arguments.done", `,"item_id":"f1","arguments":"{\"item\":\"milk\"}"`)
	server("response.done", "")
	pass(300)
	r.begin()
	pass(100)
	for range 3 {
		server("response.output_audio.delta", `,"item_id":"m1","delta":"`+sound(100)+`"`)
		server("response.output_audio_transcript.delta", `,"item_id":"m1","delta":"ha "`)
	}
	server("response.output_item.done", `,"item":{"id":"m1","type":"message"}`)
	server("response.done", "")
	server("conversation.item.truncated", `,"item_id":"m1","audio_end_ms":250`)

	client("session.update", `,"session":{"audio":{"input":{"transcription":{"model":"w"}}}}`)
	client("input_audio_buffer.append", `,"audio":"`+sound(500)+`"`)
	server("input_audio_buffer.committed", `,"item_id":"i2"`) // the app commits
	server("conversation.item.input_audio_transcription.completed", `,"item_id":"i2","transcript":"stop"`)
	server("conversation.item.input_audio_transcription.completed", `,"item_id":"i2","transcript":"stop"`) // twice
	pass(10)
	r.begin()
	pass(5)
	server("response.output_text.delta", `,"item_id":"m2","delta":"Ok."`)
	r.ended(errQuiet)
	if want := []string{
		`heard {"text":"","audioMs":1200} <nil>`,
		`tool_called {"name":"add_item","arguments":{"item":"milk"}} <nil>`,
		`said {"text":"ha ha ha ","afterMs":100,"audioMs":300,"afterSpeechMs":500} <nil>`,
		`interrupted {"playedMs":250,"audioMs":300} <nil>`,
		`heard {"text":"stop","audioMs":500} <nil>`,
		`said {"text":"Ok.","afterMs":5,"audioMs":0,"afterSpeechMs":15} <nil>`,
		`ended {"reason":"quiet"} <nil>`,
	}; !slices.Equal(rows, want) {
		t.Errorf("got rows\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}
