//go:build unix

package e2e

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// After a hundred logins, neither a dump of the database nor the log at debug level contains a device code, user
// code, token, install id or cookie in plain text, and the audit trail contains no address of a user or computer.
func TestHundredLogins_LeaveNoSecretInClear(t *testing.T) {
	trustEngines(t, func(t *testing.T, b *remoteBackend, dump func() string) {
		w := newWire(t, b, here)
		someone := newPerson(t)
		secrets := map[string]string{"inst_trust0123456789": "install id", password: "password"}
		var token string
		for i := range 100 {
			code := w.issue()
			w.poll(code.DeviceCode).is(t, http.StatusOK)
			if i == 0 {
				someone.approve(code.VerificationURL, "hundred@example.org")
			} else {
				someone.approveOnly(code.VerificationURL)
			}
			token = w.redeem(code.DeviceCode)
			w.poll(code.DeviceCode).is(t, http.StatusNotFound)
			w.send("GET", backendapi.PathAccount, "", "Authorization", "Bearer "+token).is(t, http.StatusOK)
			secrets[code.DeviceCode], secrets[code.UserCode] = "device code", "user code"
			secrets[strings.ReplaceAll(code.UserCode, "-", "")], secrets[token] = "user code", "token"
		}
		for _, c := range someone.client.Jar.Cookies(someone.at) {
			secrets[c.Value[strings.LastIndex(c.Value, ".")+1:]] = "cookie"
		}
		someone.open(b.url + "/account")
		someone.open(b.url + "/account/links/revoke-all")
		someone.submit("/account/links/revoke-all")
		w.send("GET", backendapi.PathAccount, "", "Authorization", "Bearer "+token).is(t, http.StatusUnauthorized)
		if len(secrets) < 400 {
			t.Fatalf("only %d secrets were captured, want at least 400", len(secrets))
		}
		searchAll(t, b, dump(), secrets)
		trail := b.admin("trail", "--json", "--limit", "1000")
		// The 401 issued another code, and the sign-up shows the page a second time.
		for action, n := range map[string]int{"issue": 101, "view": 101, "approve": 100, "redeem": 100, "revoke": 100} {
			if got := strings.Count(trail, `"`+action+`"`); got != n {
				t.Errorf("the trail has %d entries of %s, want %d", got, action, n)
			}
		}
	}, "SERVICE_BACKEND_LOG_LEVEL=debug", "SERVICE_BACKEND_CODES_PER_MINUTE=10000")
}

// searchAll searches the database dump and the log for secrets, and the audit trail for addresses of users and
// computers.
func searchAll(t *testing.T, b *remoteBackend, dump string, secrets map[string]string) {
	t.Helper()
	told := map[string]string{"database": dump, "log": readAll(t, b.logs)}
	if strings.Count(dump, "hostcanary") < 200 || strings.Count(told["log"], "link created") != 100 {
		t.Fatal("the dump or the log is incomplete")
	}
	for secret, what := range secrets {
		for where, text := range told {
			if strings.Contains(text, secret) {
				t.Errorf("the %s contains a %s", where, what)
			}
		}
	}
	lines := 0
	for line := range strings.Lines(dump) {
		if !strings.Contains(line, "INTO link_trail") && !strings.Contains(line, "INTO public.link_trail") {
			continue
		}
		lines++
		for _, clear := range []string{"hundred@", "hostcanary", "127.0.0", "::1"} {
			if strings.Contains(line, clear) {
				t.Fatalf("the trail contains %s: %s", clear, line)
			}
		}
	}
	if lines < 500 {
		t.Errorf("the dump has only %d entries of the trail", lines)
	}
}

// Ten thousand unauthenticated posts from one address are rate-limited with Retry-After. Rows and memory stay
// bounded, and other addresses are served as usual. A body that is too large gets status 413, a malformed one 400.
func TestDeviceCodes_FloodIsCapped(t *testing.T) {
	if runtime.GOOS != "linux" {
		missing(t, "a second loopback address", "run this test on Linux")
	}
	trustEngines(t, func(t *testing.T, b *remoteBackend, dump func() string) {
		w, other := newWire(t, b, here), newWire(t, b, elsewhere)
		refusals(t, w)
		before := usageOf(t, b.cmd.Process.Pid)
		posts, served, capped := full(10_000, 1_000), 0, 0
		known := w.issue()
		for i := range posts {
			path, body := backendapi.PathDeviceCode, `{"scope":"account_full"}`
			if i%2 == 1 {
				path, body = backendapi.PathSessions, `{"project":"com.example.hello"}`
			}
			r := w.send("POST", path, body, backendapi.HeaderInstallID, "inst_flood0123456789")
			switch wait, err := strconv.Atoi(r.header.Get("Retry-After")); {
			case r.status == http.StatusOK || r.status == http.StatusUnauthorized:
				served++
			case r.status == http.StatusTooManyRequests && err == nil && wait >= 1 && wait <= 60 &&
				r.problem(t).Code == problem.CodeRateLimited:
				capped++
			default:
				t.Fatalf("post %d: got status %d %v %s, want 200, 401 or 429", i, r.status, r.header, r.body)
			}
			if i%(posts/10) == 0 {
				other.issue()
				w.poll(known.DeviceCode).is(t, http.StatusOK)
			}
		}
		after := usageOf(t, b.cmd.Process.Pid)
		text := dump()
		rows := strings.Count(text, "INTO device_codes") + strings.Count(text, "INTO public.device_codes")
		lines := strings.Count(text, "INTO link_trail") + strings.Count(text, "INTO public.link_trail")
		t.Logf("%d posts: %d served, %d capped; %d rows of codes, %d lines of the trail; memory %d kB, before it was %d kB", posts, served, capped, rows, lines,
			after.kilobytes, before.kilobytes)
		if capped < posts*8/10 || rows > served+12 || lines > served+12+5 {
			t.Errorf("%d of %d posts were limited, want 80 %%; %d rows and %d audit entries were written", capped, posts, rows,
				lines)
		}
		if after.kilobytes > before.kilobytes+64<<10 {
			t.Errorf("memory grew from %d to %d kB, want at most 64 MiB of growth", before.kilobytes, after.kilobytes)
		}
	}, "SERVICE_BACKEND_CODES_PER_MINUTE=30")
}

// refusals checks requests that the backend refuses before it generates a code.
func refusals(t *testing.T, w *wire) {
	t.Helper()
	install := []string{backendapi.HeaderInstallID, "inst_flood0123456789"}
	huge := `{"scope":"account_full","x":"` + strings.Repeat("x", 2<<20) + `"}`
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{backendapi.PathDeviceCode, huge, http.StatusRequestEntityTooLarge},
		{backendapi.PathDeviceToken, `{"deviceCode":"` + strings.Repeat("x", 2<<20) + `"}`,
			http.StatusRequestEntityTooLarge},
		{backendapi.PathDeviceCode, `{"scope":"account_half"}`, http.StatusBadRequest},
		{backendapi.PathDeviceCode, `{}`, http.StatusBadRequest},
		{backendapi.PathDeviceCode, `{"scope":"account_full","scope":"account_full"}`, http.StatusBadRequest},
		{backendapi.PathDeviceCode, `{"scope":"account_full","more":1}`, http.StatusBadRequest},
		{backendapi.PathDeviceCode, `{"Scope":"account_full"}`, http.StatusBadRequest},
		{backendapi.PathDeviceCode, `{"scope":"account_full"} {}`, http.StatusBadRequest},
		{backendapi.PathDeviceCode, `not JSON`, http.StatusBadRequest},
		{backendapi.PathDeviceToken, `{"deviceCode":"a","deviceCode":"b"}`, http.StatusBadRequest},
		{backendapi.PathDeviceToken, `{}`, http.StatusBadRequest},
	} {
		if r := w.send("POST", c.path, c.body, install...); r.status != c.status {
			t.Errorf("%s %.60s: got status %d %.200s, want the status in the table", c.path, c.body, r.status, r.body)
		}
	}
	if r := w.send("POST", backendapi.PathSessions, `{}`); r.status != http.StatusBadRequest {
		t.Errorf("request without credentials: status %d, want 400", r.status)
	}
}
