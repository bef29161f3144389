//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// restTime is longer than the time after which an idle adapter rests.
const restTime = 100 * time.Second

// adapterState returns the state and the process id of an adapter as shown by `servicectl plugin list`.
func adapterState(t *testing.T, w *world, name string) (state string, pid int) {
	t.Helper()
	out, errs, _ := w.ctl("plugin", "list", "--json")
	var list struct {
		Plugins []struct {
			Name, State    string
			PID, CrashedMs int
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	for _, p := range list.Plugins {
		if p.CrashedMs != 0 {
			t.Errorf("%s crashed", p.Name)
		}
		if p.Name == name {
			state, pid = p.State, p.PID
		}
	}
	return state, pid
}

// rests waits until the adapters that calls to the embedded backend need are resting.
func (w *world) rests() {
	w.t.Helper()
	for _, name := range []string{"backendlocal", "browsersim"} {
		if !eventually(restTime, func() bool {
			time.Sleep(time.Second) // each check starts a program
			state, _ := adapterState(w.t, w, name)
			return state == "stopped"
		}) {
			w.t.Fatalf("%s does not rest within %v", name, restTime)
		}
	}
}

// health requests the backend's health on a new connection.
func health(url string) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url + "/api/health")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// The embedded backend keeps running while a page shows a session, and rests a minute later. Its address still works:
// 200 concurrent requests start the backend again, with the user's link and session. If the daemon is killed, the
// backend exits too, and the next one has the same address.
func TestEmbeddedBackend_Rests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	a := startAgent(w, "modern", false)
	browser := linkAnd(t, w, a)
	url := backendURL(t, w)
	session := a.call("createSimulatorSession", map[string]any{"openBrowser": false})
	openSimulator(t, browser, session.str(t, "sessionUrl"))
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		_, pid := adapterState(t, w, "backendlocal")
		time.Sleep(restTime) // longer than an unused backend needs to rest
		if state, now := adapterState(t, w, "backendlocal"); state != "running" || now != pid {
			t.Errorf("with an open page: %s, process %d; want it running, process %d", state, now, pid)
		}
	}
	run(t, browser, "leave the page", chromedp.Navigate("about:blank"))
	w.rests()

	var all sync.WaitGroup
	errs := make([]error, 200)
	for i := range errs {
		all.Go(func() { errs[i] = health(url) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	same := func(when string) {
		t.Helper()
		got := a.call("createSimulatorSession", map[string]any{"openBrowser": false})
		if got.IsError || got.str(t, "sessionId") != session.str(t, "sessionId") || backendURL(t, w) != url {
			t.Errorf("%s: %v at %s, want the same session at %s", when, got.Structured, backendURL(t, w), url)
		}
	}
	same("after a rest")

	kill := func() {
		t.Helper()
		_, adapter := adapterState(t, w, "backendlocal")
		daemon := w.daemonPID()
		if err := syscall.Kill(daemon, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if !waitGone(daemon, 5*time.Second) || adapter > 0 && !waitGone(adapter, 5*time.Second) {
			t.Error("a process of a killed daemon is left")
		}
		if err := health(url); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("without a daemon: %v, want a refused connection", err)
		}
	}
	kill()
	same("after a kill")
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		w.rests()
		kill()
		same("after a kill at rest")
	}
}
