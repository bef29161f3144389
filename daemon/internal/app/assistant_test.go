//go:build unix

package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/scenario"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/clientio/local"
)

// asking returns an app that passes the wearer's words to its assistant and shows the answer. Like most apps, it waits
// for the answer outside its main loop.
func asking(t *testing.T) (begin func(*testApp), on func(*testApp, glasses.Frame)) {
	begin = func(a *testApp) { a.ask(glasses.TypeTranscriptionStart, struct{}{}) }
	on = func(a *testApp, f glasses.Frame) {
		var said glasses.Transcript
		if f.Type != glasses.TypeTranscript || json.Unmarshal(f.Payload, &said) != nil {
			return
		}
		a.calls.Add(1)
		go func() {
			defer a.calls.Add(-1)
			a.send(glasses.TypeDisplayShow, "show-"+f.ID, text(answerOf(t, a.gateway, said.Text)))
		}()
	}
	return begin, on
}

func answerOf(t *testing.T, g *glasses.Gateway, said string) string {
	body := fmt.Sprintf(`{"model":"assistant","messages":[{"role":"user","content":%q}],`+
		`"tools":[{"type":"function","function":{"name":"add_item"}}]}`, said)
	r, err := http.NewRequestWithContext(t.Context(), "POST", g.URL+"/chat/completions", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Authorization", "Bearer "+g.Token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Service-User", "0123456789abcdef0123456789abcdef")
	r.Header.Set("X-Service-Memory", "wearer-agreed")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	var answer struct {
		Choices []struct {
			Message struct {
				Content   string
				ToolCalls []struct{ Function struct{ Name string } } `json:"tool_calls"`
			}
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || len(answer.Choices) == 0 {
		return fmt.Sprint(res.Status, err)
	}
	if m := answer.Choices[0].Message; len(m.ToolCalls) > 0 {
		return "calls " + m.ToolCalls[0].Function.Name
	}
	return answer.Choices[0].Message.Content
}

const shopping = `{"scenario":1,"name":"shopping","clock":"virtual","assistant":{"rules":[
	{"when":{"contains":"milk"},"reply":{"toolCall":{"name":"add_item","arguments":{"item":"milk"}}}},
	{"when":{"contains":"weather"},"reply":{"text":"It is sunny.","delayMs":1500}}]},"steps":[
	{"transcript":{"text":"add milk please"}},
	{"expect":{"type":"assistant.tool_called","sender":"service","payload":{"name":"add_item","arguments":{"item":"milk"}},
		"withinMs":0}},
	{"expectDisplay":{"text":["calls add_item"],"withinMs":0}},
	{"transcript":{"text":"how is the weather"}},
	{"advance":1499},
	{"expectDisplay":{"text":["calls add_item"],"withinMs":0}},
	{"expectDisplay":{"text":["It is sunny."],"withinMs":1}}]}`

// runShopping runs a scenario with an assistant in a new session, and returns the report and the rows of the log.
func runShopping(t *testing.T, l *locals, path string) (report scenario.Report, log string, id string) {
	t.Helper()
	o, err := l.StartLocal(t.Context(), caller.Caller{IO: local.New()}, session.LocalRequest{Project: "com.example.app",
		Clock: backend.ClockVirtual, AssistantScript: path, Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	begin, on := asking(t)
	attach(t, o, true, begin, on)
	report = runFile(t, l, o.SessionID, path, "")
	page, err := l.Since(t.Context(), backend.Target{}, o.SessionID, 0, session.MaxLimit)
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, row := range page.Events {
		rows.Write(row)
		rows.WriteByte('\n')
	}
	return report, rows.String(), o.SessionID
}

func TestAssistant_RunsAlikeEveryTime(t *testing.T) {
	t.Parallel()
	l := startLocals(t, t.TempDir())
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "shopping.json"), shopping)
	first, log, id := runShopping(t, l, path)
	if first.Verdict != scenario.Pass {
		t.Fatalf("%+v\n%s", first.Steps, log)
	}
	for range 5 {
		if again, other, _ := runShopping(t, l, path); again.Verdict != scenario.Pass || other != log {
			t.Fatalf("second run: %+v\n%s\nwant the log of the first run:\n%s", again.Steps, other, log)
		}
	}
	recording := filepath.Join(dir, "recording", "shopping.json")
	if _, err := scenario.New(l).Record(t.Context(),
		scenario.RecordRequest{Files: ours, SessionID: id, Path: recording}); err != nil {
		t.Fatal(err)
	}
	// The recording contains the assistant's script.
	if replayed, _, _ := runShopping(t, l, recording); replayed.Verdict != scenario.Pass || len(replayed.Diffs) != 0 {
		t.Errorf("%+v %+v", replayed.Steps, replayed.Diffs)
	}
}

// A recording begins with what the assistant knew, so that it passes in a session that knows nothing.
func TestAssistant_RecordingKnowsTheWearer(t *testing.T) {
	t.Parallel()
	l := startLocals(t, t.TempDir())
	dir := t.TempDir()
	script := write(t, filepath.Join(dir, "script.json"), `{"rules":[
		{"when":{"contains":"I am Ann"},"reply":{"text":"Hello.","remember":"Name: Ann"}},
		{"when":{"memory":"Name: Ann"},"reply":{"text":"You are Ann."}},
		{"when":{"noMemory":true},"reply":{"text":"Who are you?"}}]}`)
	recording := filepath.Join(dir, "recording", "known.json")
	for _, said := range []string{"I am Ann", "Who am I?"} {
		o, err := l.StartLocal(t.Context(), caller.Caller{IO: local.New()}, session.LocalRequest{Project: "com.example.app",
			Clock: backend.ClockVirtual, AssistantScript: script, Fresh: true})
		if err != nil {
			t.Fatal(err)
		}
		begin, on := asking(t)
		attach(t, o, true, begin, on)
		path := write(t, filepath.Join(dir, "say.json"),
			`{"scenario":1,"name":"say","clock":"virtual","steps":[{"transcript":{"text":"`+said+`"}},{"advance":1000}]}`)
		s, err := scenario.Load(t.Context(), ours, path)
		if err != nil {
			t.Fatal(err)
		}
		runner := scenario.New(l)
		if _, err := runner.RunSteps(t.Context(), scenario.StepsRequest{Files: ours, SessionID: o.SessionID, Dir: dir,
			Steps: s.Steps}); err != nil {
			t.Fatal(err)
		}
		recorded, err := runner.Record(t.Context(),
			scenario.RecordRequest{Files: ours, SessionID: o.SessionID, Path: recording})
		if err != nil {
			t.Fatal(err)
		}
		known := said != "I am Ann"
		if noted := strings.Contains(strings.Join(recorded.Notes, "\n"), "keep the file private"); noted != known {
			t.Errorf("%s: notes: got %q, want one about the memory: %t", said, recorded.Notes, known)
		}
	}
	s, err := scenario.Load(t.Context(), ours, recording)
	if err != nil || s.Memory != "Name: Ann" {
		t.Fatalf("the recording begins with %q, %v", s.Memory, err)
	}
	if replayed, _, _ := runShopping(t, l, recording); replayed.Verdict != scenario.Pass || len(replayed.Diffs) != 0 {
		t.Errorf("%+v %+v", replayed.Steps, replayed.Diffs)
	}
}
