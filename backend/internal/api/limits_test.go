package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/proto/backendapi"
)

// When an address reaches its limit, its existing codes can still be polled, other addresses are served, and its
// refused requests store nothing.
func TestDeviceCodes_AreLimitedPerAddress(t *testing.T) {
	const limit = 5
	w := newWorld(t, func(o *Options) { o.CodesPerMinute = limit })
	flood := []string{ipHeader, "192.0.2.1", backendapi.HeaderInstallID, installID}
	known := w.issue(flood...)
	for i := range 2000 {
		path, body := backendapi.PathDeviceCode, `{"scope":"account_full"}`
		if i%2 == 1 {
			path, body = backendapi.PathSessions, `{"project":"com.example.hello"}`
		}
		got := w.call("POST", path, body, flood...)
		if i < limit-1 {
			continue
		}
		p := got.problem(http.StatusTooManyRequests, "rate_limited")
		wait, err := strconv.Atoi(got.header.Get("Retry-After"))
		if err != nil || wait < 1 || wait > 60 || !p.Retryable {
			t.Fatalf("request %d: got Retry-After %q, problem %+v, want 1 to 60 s and retryable", i,
				got.header.Get("Retry-After"), p)
		}
	}
	if n, err := link.NewStore(w.db).PendingCodes(t.Context(), w.now()); err != nil || n != limit {
		t.Errorf("%d codes stored (error %v), want one per accepted request", n, err)
	}
	w.pass(5 * time.Second)
	w.call("POST", backendapi.PathDeviceToken, `{"deviceCode":"`+known.DeviceCode+`"}`, flood...).is(http.StatusOK)
	w.issue(ipHeader, "192.0.2.2")
	w.pass(12 * time.Second)
	w.issue(flood...)
}

func TestDeviceCodes_AreLimitedPerNetworkOnIPv6(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.CodesPerMinute = 1 })
	w.issue(ipHeader, "2001:db8::1")
	w.call("POST", backendapi.PathDeviceCode, `{"scope":"account_full"}`, ipHeader,
		"2001:db8::ffff:1").problem(http.StatusTooManyRequests, "rate_limited")
	w.issue(ipHeader, "2001:db8:0:1::1")
	w.issue(ipHeader, "192.0.2.1")
	w.issue(ipHeader, "192.0.2.2")
}

// The refusal of a revoked token contains the reason, even if its address may request no more codes this minute.
func TestInvalidToken_IsReportedWithoutCode(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.CodesPerMinute = 1 })
	token := w.link()
	if _, err := w.links.RevokeAll(t.Context(), w.ada.ID, audit.Operator()); err != nil {
		t.Fatal(err)
	}
	got := w.call("GET", backendapi.PathAccount, "", "Authorization", "Bearer "+token)
	p := got.problem(http.StatusUnauthorized, "auth_required")
	if got.header.Get("WWW-Authenticate") == "" || got.header.Get("Retry-After") == "" ||
		!strings.Contains(p.Detail, "revoked") {
		t.Errorf("got headers %v, problem %+v, want a challenge, Retry-After and the revocation", got.header, p)
	}
}

func TestHealth(t *testing.T) {
	w := newWorld(t)
	w.pass(90 * time.Second)
	got := w.call("GET", backendapi.PathHealth, "").is(http.StatusOK)
	var h backendapi.Health
	got.into(&h)
	if !h.OK || h.Service != "service-backend" || h.Version != buildinfo.Version || h.Commit != buildinfo.Commit ||
		h.BuiltAt != buildinfo.BuiltAt ||
		h.UptimeMs != 90_000 || h.Phase == "" || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("got health %+v, want the version of this build and its uptime", h)
	}
	for hint, words := range map[string][]string{
		"sessions":     {"POST /api/sessions", "install-id", "anonymous", "bearer token", "linked"},
		"versionCheck": {"commit", "revision"},
	} {
		text := strings.ReplaceAll(h.Hints[hint], backendapi.HeaderInstallID, "install-id")
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("hint %s lacks %q: %s", hint, word, text)
			}
		}
	}
}

func TestHealth_WithoutDatabase(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Ready = func(context.Context) error { return errors.New("disk on fire") } })
	var h backendapi.Health
	got := w.call("GET", backendapi.PathHealth, "").is(http.StatusServiceUnavailable).into(&h)
	if h.OK || strings.Contains(string(got.body), "fire") || !strings.Contains(w.log.String(), "fire") {
		t.Errorf("got health %s, log %s, want not ok and the error only in the log", got.body, w.log)
	}
}

// The database is queried at most once a second, regardless of the number of callers, and no result is reused for
// longer than that.
func TestHealth_CachesTheDatabaseCheck(t *testing.T) {
	var asked atomic.Int32
	var gone atomic.Bool
	w := newWorld(t, func(o *Options) {
		o.Ready = func(ctx context.Context) error {
			asked.Add(1)
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("the database query has no deadline")
			}
			if gone.Load() {
				return errors.New("gone")
			}
			return nil
		}
	})
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { w.call("GET", backendapi.PathHealth, "").is(http.StatusOK) })
	}
	all.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("the database was queried %d times, want once", n)
	}
	gone.Store(true)
	w.pass(readyFor)
	w.call("GET", backendapi.PathHealth, "").is(http.StatusServiceUnavailable)
	gone.Store(false)
	w.pass(readyFor)
	w.call("GET", backendapi.PathHealth, "").is(http.StatusOK)
}

// An internal error is logged and never sent to the caller.
func TestInternalErrors_AreNotRevealed(t *testing.T) {
	w := newWorld(t)
	token := w.link()
	code := w.issue()
	w.db.Close()
	for _, got := range []answer{
		w.poll(code.DeviceCode),
		w.call("POST", backendapi.PathDeviceCode, `{"scope":"account_full"}`),
		w.call("GET", backendapi.PathAccount, "", "Authorization", "Bearer "+token),
		w.call("GET", backendapi.PathAccount, "", backendapi.HeaderInstallID, installID),
	} {
		if p := got.problem(http.StatusInternalServerError, "internal_error"); !p.Retryable ||
			strings.Contains(string(got.body), "database") {
			t.Errorf("%s: got %s, want a retryable problem without the cause", got.what, got.body)
		}
	}
	if n := strings.Count(w.log.String(), "database is closed"); n != 4 {
		t.Errorf("the error was logged %d times, want 4", n)
	}
}

// After a day of linking, neither the database nor the log contains a plain-text credential or an install ID.
func TestSecrets_AreNotStoredOrLogged(t *testing.T) {
	w := newWorld(t)
	canaries := map[string]string{installID: "install id"}
	for range 100 {
		w.linkedDay(canaries)
	}
	if len(canaries) < 500 {
		t.Fatalf("got only %d canaries, want at least 500", len(canaries))
	}
	files, err := filepath.Glob(w.file + "*")
	if err != nil {
		t.Fatal(err)
	}
	var dump strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		dump.Write(data)
	}
	if !strings.Contains(dump.String(), "hostcanary") || !strings.Contains(w.log.String(), "link created") {
		t.Fatal("the search found no known text, so it cannot find canaries")
	}
	for canary, what := range canaries {
		if strings.Contains(dump.String(), canary) {
			t.Errorf("the database contains a %s", what)
		}
		if strings.Contains(w.log.String(), canary) {
			t.Errorf("the log contains a %s", what)
		}
	}
}

// linkedDay links an install, uses the link, revokes it and requests a new one. It adds every credential it sees to
// canaries.
func (w *world) linkedDay(canaries map[string]string) {
	w.Helper()
	see := func(what string, c backendapi.DeviceCode) {
		canaries[c.DeviceCode] = "device code"
		canaries[c.UserCode] = what
		canaries[strings.ReplaceAll(c.UserCode, "-", "")] = what
	}
	anonymous := []string{backendapi.HeaderInstallID, installID, backendapi.HeaderHost, "hostcanary"}
	code := w.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`,
		anonymous...).authRequired().DeviceCode
	see("user code", code)
	see("requested user code", w.issue(anonymous...))
	w.poll(code.DeviceCode).is(http.StatusOK)
	w.approve(code)
	var token backendapi.Token
	w.poll(code.DeviceCode).is(http.StatusOK).into(&token)
	canaries[token.AuthToken] = "token"
	w.poll(code.DeviceCode).is(http.StatusNotFound)
	bearer := []string{"Authorization", "Bearer " + token.AuthToken}
	var s backendapi.CreatedSession
	if err := json.Unmarshal(w.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`,
		bearer...).is(http.StatusCreated).body, &s); err != nil {
		w.Fatal(err)
	}
	var sst backendapi.SessionSecret
	w.call("POST", backendapi.PathSessions+"/"+s.SessionID+"/secrets", "", bearer...).is(http.StatusCreated).into(&sst)
	canaries[sst.AppSecret] = "session secret"
	w.call("DELETE", backendapi.PathSessions+"/"+s.SessionID, "", bearer...).is(http.StatusOK)
	if _, err := w.links.RevokeAll(w.Context(), w.ada.ID, audit.Operator()); err != nil {
		w.Fatal(err)
	}
	see("user code after a revocation", w.call("GET", backendapi.PathAccount, "", bearer...).authRequired().DeviceCode)
	w.pass(time.Minute)
	if err := w.links.Sweep(w.Context()); err != nil {
		w.Fatal(err)
	}
}
