//go:build unix

package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// A browser session survives a page reload, restarts of app, daemon and backend, and half a minute without a network.
// Its log contains every row once and in order.
func TestBrowserSessionSurvives(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url)
	a := startAgent(w, "modern", false)
	browser := linkAnd(t, w, a)
	s := a.call("createSimulatorSession", map[string]any{"fresh": true, "openBrowser": false})
	id := s.str(t, "sessionId")
	openSimulator(t, browser, s.str(t, "sessionUrl"))
	desk := deskApps(t)["go"]
	app := startApp(t, w, desk, s)

	live := `document.querySelector("#simulator").dataset.live === "yes"`
	taps, since := 0, 0.0
	// tap moves back one entry and waits until the app has drawn the change, regardless of what the panel showed
	// before.
	tap := func(after string) {
		t.Helper()
		taps++
		done := a.call("injectInput", map[string]any{"sessionId": id, "kind": "back"})
		if done.IsError {
			t.Fatalf("input after %s: got %v, want success", after, done.Structured)
		}
		for _, want := range []string{"input", "display.show", "result"} {
			row := a.call("waitForEvent", map[string]any{"sessionId": id, "type": want, "since": since,
				"timeoutSeconds": 40})
			next, ok := row.Structured["next"].(float64)
			if row.IsError || !ok || row.Structured["event"] == nil {
				t.Fatalf("no row %s after %s: %v", want, after, row.Structured)
			}
			since = next
		}
	}
	// within waits until the page shows that it is offline, which takes at most three seconds on an idle machine.
	within := func(what string) {
		t.Helper()
		lost := time.Now()
		run(t, browser, "the page tells of "+what, until("!("+live+")"))
		t.Logf("the page still showed itself as live for %v after %s", time.Since(lost), what)
	}
	ready := a.call("waitForEvent", map[string]any{"sessionId": id, "type": "speech.say", "timeoutSeconds": 30})
	since = ready.Structured["next"].(float64)
	tap("the start")

	run(t, browser, "reload", chromedp.Reload(), until(live))
	tap("a reload")

	app.Process.Signal(syscall.SIGKILL)
	app.Wait()
	startApp(t, w, desk, s)
	since = a.call("waitForEvent", map[string]any{"sessionId": id, "type": "speech.say", "since": since,
		"timeoutSeconds": 30}).Structured["next"].(float64)
	tap("a new app")

	w.ctl("daemon", "stop")
	tap("a new daemon")

	b.stop()
	within("a stopped backend")
	b.start()
	run(t, browser, "come back", until(live))
	tap("a new backend")

	b.cmd.Process.Signal(syscall.SIGSTOP)
	within("a silent network")
	time.Sleep(30 * time.Second) // the test requires this half minute without a network
	b.cmd.Process.Signal(syscall.SIGCONT)
	run(t, browser, "come back", until(live))
	tap("30 s of silence")

	checkWhole(t, wholeLog(t, a, id), taps)
}

// wholeLog returns the log once every request in it has its result, because the app may have drawn more often than
// the test has waited.
func wholeLog(t *testing.T, a *agent, id string) []map[string]any {
	t.Helper()
	for {
		rows := eventRows(t, a, id)
		open := map[any]bool{}
		for _, row := range rows {
			if row["kind"] == "request" && row["type"] != "clock.sleep" {
				open[row["id"]] = true
			}
			if row["kind"] == "result" {
				delete(open, row["id"])
			}
		}
		if len(open) == 0 {
			return rows
		}
		next := a.call("waitForEvent", map[string]any{"sessionId": id, "type": "result", "since": float64(len(rows)),
			"timeoutSeconds": 40})
		if next.Structured["event"] == nil {
			return rows
		}
	}
}

// checkWhole checks that a log has no gap, no duplicate row, a result for every request, and every input.
func checkWhole(t *testing.T, rows []map[string]any, taps int) {
	t.Helper()
	seen, results, inputs := map[string]bool{}, map[any]int{}, 0
	for i, row := range rows {
		if row["seq"] != float64(i+1) {
			t.Fatalf("row %d has seq %v, want no gap", i+1, row["seq"])
		}
		key := fmt.Sprint(row["sender"], " ", row["id"], " ", row["kind"])
		if seen[key] {
			t.Errorf("row %d is a duplicate: %v", i+1, row)
		}
		seen[key] = true
		switch {
		case row["kind"] == "result":
			results[row["id"]]++
		case row["type"] == "input":
			inputs++
		}
	}
	for _, row := range rows {
		if row["kind"] == "request" && results[row["id"]] != 1 && row["type"] != "clock.sleep" {
			t.Errorf("request %v has %d results, want 1", row, results[row["id"]])
		}
	}
	if inputs != taps {
		t.Errorf("the log has %d inputs, want %d", inputs, taps)
	}
}
