//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/proto/telemetry"
)

func mentionsNotice(text string) bool { return strings.Contains(text, "telemetry is on") }

// After installation, no request reaches the endpoint until the notice has been shown. Exactly one of ten concurrent
// first calls carries the notice. Uploads contain only the listed fields and identify only the install. A batch whose
// response was lost counts once. Purge deletes the events locally and on the backend.
func TestTelemetry_FromInstallToPurge(t *testing.T) {
	t.Parallel()
	for engine, shims := range map[string]int{"sqlite": 1, "postgres": 10} { // one agent, or ten without a daemon
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			database, dump := newDatabase(t, engine)
			b := startBackend(t, database)
			e := newEndpoint(t, b.url)
			w := newWorld(t, "backend_url: "+e.url+"\n")
			rows := func() int {
				text := strings.ReplaceAll(dump(), "INSERT INTO public.", "INSERT INTO ")
				return strings.Count(text, "INSERT INTO telemetry_events")
			}

			if s := w.telemetry(); s.UploadAllowed || s.DecidedBy != "notice" {
				t.Errorf("status before the notice: got %+v, want no upload before the notice", s)
			}
			stopDaemon(w)
			if n := len(e.requests()); n != 0 {
				t.Fatalf("%d requests before the notice, want 0", n)
			}

			carried := 0
			for _, r := range tenCalls(w, "getPlatformInfo", shims) {
				inText := false
				for i, block := range r.Content {
					if mentionsNotice(block.Text) {
						carried++
						if inText = true; i == 0 {
							t.Error("the notice comes before the result")
						}
					}
				}
				notice, _ := r.Structured["notice"].(string)
				if mentionsNotice(notice) != inText || len(r.Structured) < 2 {
					t.Errorf("the structured content is %v; want an answer with the notice: %v", r.Structured, inText)
				}
			}
			if carried != 1 {
				t.Errorf("%d of ten results carry the notice, want 1", carried)
			}

			// The backend accepts the batch, but the daemon does not receive the response.
			e.lose(true)
			stopDaemon(w)
			if s := w.telemetry(); s.Waiting != 11 || s.DecidedBy != "default" || s.NoticeShownAt == nil {
				t.Errorf("status after a lost response: got %+v, want 11 events waiting", s)
			}
			e.lose(false)
			stopDaemon(w)
			if s := w.telemetry(); s.Waiting != 0 {
				t.Errorf("status after the upload: %+v, want nothing waiting", s)
			}
			if n := rows(); n != 11 {
				t.Errorf("%d rows, want 11", n)
			}
			checkUploads(t, w, e)

			var install struct{ InstallID string }
			if !readJSON(filepath.Join(w.dir, "install.json"), &install) ||
				strings.Contains(dump(), install.InstallID) {
				t.Error("the dump contains the install id")
			}
			out, errs, code := w.ctl("telemetry", "purge", "--json")
			var purged struct {
				Backend        string
				BackendDeleted int
				Local          int
			}
			if json.Unmarshal([]byte(out), &purged) != nil || code != 0 || purged.Backend != "erased" ||
				purged.BackendDeleted != 11 || purged.Local != 11 {
				t.Errorf("purge: exit %d, want 0 and 11 events deleted: %s%s", code, out, errs)
			}
			if n := rows(); n != 0 || events(w) != "" {
				t.Errorf("%d rows remain, want none; local log, want it empty: %s", n, events(w))
			}
		})
	}
}

// checkUploads compares every request with the list of permitted events.
func checkUploads(t *testing.T, w *world, e *endpoint) {
	t.Helper()
	seen := map[string]int{}
	for _, r := range e.requests() {
		if r.method != http.MethodPost || r.header.Get("Authorization") != "" ||
			!strings.HasPrefix(r.header.Get(backendapi.HeaderInstallID), "inst_") {
			t.Errorf("got %s with headers %v, want a POST with only the install id", r.method, r.header)
		}
		d := json.NewDecoder(bytes.NewReader(r.body))
		d.DisallowUnknownFields()
		var batch telemetry.Batch
		if err := d.Decode(&batch); err != nil {
			t.Fatalf("decode %s: %v", r.body, err)
		}
		for _, event := range batch.Events {
			seen[event.ID]++
			if _, err := event.Record(); err != nil {
				t.Error(err)
			}
			if event.Name == telemetry.ToolCalled && (string(event.Fields["tool"]) != `"getPlatformInfo"` ||
				string(event.Fields["outcome"]) != `"ok"` || event.Fields["client"] != nil) {
				t.Errorf("unexpected fields of the event: %s", event.Fields)
			}
			if !strings.Contains(events(w), event.ID) {
				t.Errorf("event %s is missing from the local log", event.ID)
			}
		}
		for _, private := range []string{"zyxwho", w.dir, w.project, "inst_", filepath.Base(w.project)} {
			if strings.Contains(string(r.body), private) {
				t.Errorf("a request body contains %q: %s", private, r.body)
			}
		}
	}
	if len(seen) != 11 {
		t.Errorf("%d events were sent, want 11", len(seen))
	}
}

// A command in a terminal shows the notice once and leaves it pending for the first agent, whose answer contains it
// in both parts. A failed or cancelled call leaves it pending.
func TestNotice_OfTheTerminalAndOfTheAgent(t *testing.T) {
	t.Parallel()
	f := newFake(t, "https://example.org/activate?code="+fakeUserCode, nil)
	w := newWorld(t, "backend_url: "+f.url+"\n", "SERVICE_NO_AUTO_OPEN=1")
	w.ctl("whoami") // a completion starts no daemon
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"__complete", "session", "show", ""}, false},
		{[]string{"session", "list"}, true},
		{[]string{"tool", "call", "getPlatformInfo"}, false},
	} {
		if out, errs, code := w.ctl(c.args...); code != 0 || mentionsNotice(errs) != c.want || mentionsNotice(out) {
			t.Errorf("servicectl %v: exit %d, want the notice on standard error: %v\n%s", c.args, code, c.want, errs)
		}
	}
	a := startAgent(w, "modern", false)
	if r := a.call("searchDocs", map[string]any{"query": 7}); !r.IsError || mentionsNotice(fmt.Sprint(r)) {
		t.Errorf("a failed call: got %v, want an error without the notice", r)
	}
	code, _ := askByHand(w)
	id, answer := a.start("completeAuthLink", map[string]any{"deviceCode": code}, true, time.Minute)
	must(t, "the call waits", func() bool { return len(a.progressed) > 0 })
	a.cancel(id)
	<-answer
	for n, want := range []bool{true, false} {
		r := a.call("getPlatformInfo", map[string]any{})
		notice, _ := r.Structured["notice"].(string)
		if last := r.Content[len(r.Content)-1].Text; mentionsNotice(notice) != want ||
			want && (last != notice || len(r.Content) != 2) {
			t.Errorf("call %d of the agent: notice %q, last text %.80q; want it in both: %v", n, notice, last, want)
		}
	}
}

// A linked install uploads events under its install id only, without a token, account or code.
func TestTelemetry_LinkedInstallSendsNoAccount(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	e := newEndpoint(t, b.url)
	w := newWorld(t, "backend_url: "+e.url+"\n")
	w.ctl("accept-privacy")
	l := startLogin(w)
	code := l.until("code")
	newPerson(t).approve(strings.Replace(code["verificationUrl"].(string), e.url, b.url, 1), "usage@example.org")
	if exit := l.exit(); exit != 0 {
		t.Fatalf("login: exit %d, want 0", exit)
	}
	w.ctl("tool", "call", "listProjects")
	stopDaemon(w)
	var auth map[string]any
	if !readJSON(filepath.Join(w.dir, "auth.json"), &auth) {
		t.Fatal("auth.json cannot be read")
	}
	var sent strings.Builder
	for _, r := range e.requests() {
		sent.Write(r.body)
		if r.header.Get("Authorization") != "" || r.header.Get("Cookie") != "" ||
			!strings.HasPrefix(r.header.Get(backendapi.HeaderInstallID), "inst_") {
			t.Errorf("got headers %v, want only the install id", r.header)
		}
		for name, values := range r.header {
			sent.WriteString(name + fmt.Sprint(values))
		}
	}
	for _, name := range []string{telemetry.InstallStarted, telemetry.LoginInitiated, telemetry.LoginCompleted,
		telemetry.Linked, telemetry.ToolCalled, `"outcome":"success"`, "listProjects"} {
		if !strings.Contains(sent.String(), name) {
			t.Errorf("event %s was not sent", name)
		}
	}
	for _, secret := range []string{auth["authToken"].(string), auth["accountId"].(string), code["userCode"].(string),
		"usage@example.org", w.dir} {
		if strings.Contains(sent.String(), secret) {
			t.Errorf("the uploads contain %q", secret)
		}
	}
	checkListedValuesOnly(t, e)
}

// checkListedValuesOnly checks that requests contain only listed fields and values. It does not search for the
// computer's name, because names such as "vm" or "linux" also occur in random ids and in words.
func checkListedValuesOnly(t *testing.T, e *endpoint) {
	t.Helper()
	words := map[string][]string{
		"os": {runtime.GOOS}, "arch": {runtime.GOARCH}, "version": {"0.1.0"}, "tool": {"listProjects"}, "client": {"servicectl"}, "clientVersion": {"0.1.0"},
		"outcome": {"ok", telemetry.OutcomeSuccess},
	}
	for _, r := range e.requests() {
		for _, name := range []string{backendapi.HeaderHost, backendapi.HeaderOS, backendapi.HeaderClient} {
			if value := r.header.Get(name); value != "" {
				t.Errorf("unexpected header %s: %s", name, value)
			}
		}
		d := json.NewDecoder(bytes.NewReader(r.body))
		d.DisallowUnknownFields()
		var batch telemetry.Batch
		if err := d.Decode(&batch); err != nil {
			t.Fatalf("decode %s: %v", r.body, err)
		}
		for _, event := range batch.Events {
			if _, err := event.Record(); err != nil {
				t.Error(err)
			}
			for name, data := range event.Fields {
				var word string
				if json.Unmarshal(data, &word) == nil && !slices.Contains(words[name], word) {
					t.Errorf("%s: field %s has the unlisted value %q", event.Name, name, word)
				}
			}
		}
	}
}

// With an opt-out variable set, the daemon sends no requests, and status names the variable. Consent does not
// override it.
func TestTelemetry_SwitchesStopUploads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ variable, by, consent string }{
		"telemetry off": {"SERVICE_TELEMETRY=0", "SERVICE_TELEMETRY", "accept-privacy"},
		"do not track":  {"DO_NOT_TRACK=1", "DO_NOT_TRACK", "accept-privacy"},
		"ci":            {"CI=true", "CI", "accept-privacy"},
		"elsewhere":     {"SERVICE_BACKEND_URL=http://localhost:9", "SERVICE_BACKEND_URL", "accept-privacy"},
		"declined":      {"X=1", "consent", "decline-privacy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t, "http://localhost:9")
			w := newWorld(t, "backend_url: "+e.url+"\n", c.variable)
			if c.consent == "decline-privacy" { // events from before the decision are not sent either
				w.ctl("tool", "call", "getPlatformInfo")
				if s := w.telemetry(); s.Waiting == 0 {
					t.Errorf("no event waits for upload: %+v", s)
				}
			}
			if _, errs, code := w.ctl(c.consent); code != 0 {
				t.Fatal(errs)
			}
			for _, r := range tenCalls(w, "getPlatformInfo", 1) {
				if mentionsNotice(fmt.Sprint(r.Content)) {
					t.Error("the notice appeared although consent was already decided")
				}
			}
			w.ctl("login", "--json") // its events belong to this shell too; the backend does not respond
			if s := w.telemetry(); s.UploadAllowed || s.DecidedBy != c.by || s.Waiting != 0 {
				t.Errorf("telemetry status: got %+v, want no upload, and the variable named", s)
			}
			if recorded(w, `"tool.called"`) < 10 || recorded(w, `"account.login_initiated"`) != 1 {
				t.Errorf("the local log lacks events: %s", events(w))
			}
			stopDaemon(w)
			if r := e.requests(); len(r) != 0 {
				t.Errorf("%d requests were sent, want none: %s", len(r), r[0].body)
			}
		})
	}
}

// Events for an unreachable backend wait on disk, survive restarts of the daemon, and arrive exactly once when the
// backend returns.
func TestTelemetry_WaitsForBackend(t *testing.T) {
	t.Parallel()
	database, dump := newDatabase(t, "sqlite")
	b := startBackend(t, database)
	e := newEndpoint(t, b.url)
	w := newWorld(t, "backend_url: "+e.url+"\n")
	b.stop()
	for range 3 {
		w.ctl("tool", "call", "getPlatformInfo")
		stopDaemon(w)
	}
	if s := w.telemetry(); s.Waiting != 4 {
		t.Errorf("telemetry status: got %+v, want 4 events waiting", s)
	}
	if _, errs, code := w.ctl("telemetry", "purge"); code == 0 || !strings.Contains(errs, "next:") {
		t.Errorf("purge while the backend is down: exit %d, want an error with the next step: %s", code, errs)
	}
	w.ctl("tool", "call", "getPlatformInfo")
	stopDaemon(w)
	b.start()
	for range 2 {
		w.telemetry() // starts a daemon
		stopDaemon(w)
	}
	if n := strings.Count(dump(), "INSERT INTO telemetry_events"); n != 1 {
		t.Errorf("%d rows, want only the event since the purge", n)
	}
}
