//go:build unix

package e2e

import (
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/proto/backendapi"
)

const (
	here      = "127.0.0.1"
	elsewhere = "127.0.0.2" // another loopback address; only Linux needs no configuration for it
)

// More than ten wrong user codes a minute from one address get the same response as any unknown code, regardless of
// the address that the client claims to have. A correct code in between changes nothing, and other addresses and
// polling are unaffected. All spellings of a code count as one.
func TestUserCodes_GuessingLearnsNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		missing(t, "a second loopback address", "run this test on Linux")
	}
	trustEngines(t, func(t *testing.T, b *remoteBackend, _ func() string) {
		w := newWire(t, b, here)
		hasty := startBackend(t, envOf(b, "SERVICE_BACKEND_DATABASE"), "SERVICE_BACKEND_LINK_CODE_TTL=5")
		expired := newWire(t, hasty, here).issue()
		right, used := w.issue(), w.issue()
		someone := newPerson(t)
		someone.deny(used.VerificationURL)
		must(t, "a code expires", func() bool { return w.poll(expired.DeviceCode).status == http.StatusGone })

		look := func(from *wire, code string) httpReply {
			forged := "198.51.100." + string(rune('0'+len(code)%10))
			return from.send("GET", "/activate?code="+url.QueryEscape(code), "", "X-Forwarded-For", forged,
				"X-Real-Ip", forged, "Forwarded", "for="+forged)
		}
		plain := strings.ReplaceAll(right.UserCode, "-", "")
		for _, form := range []string{right.UserCode, plain, strings.ToLower(right.UserCode),
			strings.ToLower(plain[:4] + " " + plain[4:])} {
			if r := look(w, form); r.status != http.StatusOK || !strings.Contains(r.body, right.UserCode) {
				t.Fatalf("look up %q: status %d, want 200 with the code", form, r.status)
			}
		}
		const wrong = "BCDF-GHJK"
		gone := look(w, wrong)
		if r := look(w, "nonsense"); r.status != http.StatusBadRequest || !strings.Contains(r.body, "eight letters") {
			t.Errorf("a malformed code: status %d, want 400 and the form", r.status) // it counts as a wrong code
		}
		forms := []string{used.UserCode, expired.UserCode, wrong, "bcdf ghjk", "BCDFGHJK", "bcdf-ghjk",
			used.UserCode, expired.UserCode}
		for i, code := range forms {
			if i == 5 {
				look(w, right.UserCode)
			}
			if r := look(w, code); r.status != http.StatusNotFound || r.body != gone.body {
				t.Errorf("wrong code %d: status %d, want 404; body differs from the first: %v", i+3, r.status, r.body != gone.body)
			}
		}
		// All ten attempts are used now, unless this machine is so slow that another one has been granted in the
		// meantime.
		after := look(w, right.UserCode)
		for i := 0; after.status == http.StatusOK && i < 50; i++ {
			look(w, wrong)
			after = look(w, right.UserCode)
		}
		if after.status != http.StatusNotFound || after.body != gone.body ||
			after.header.Get("Retry-After") != gone.header.Get("Retry-After") {
			t.Errorf("the right code after ten wrong ones: status %d, want the same 404", after.status)
		}
		if r := look(newWire(t, b, elsewhere), right.UserCode); r.status != http.StatusOK {
			t.Errorf("lookup from another address: status %d, want 200", r.status)
		}
		if r := w.poll(right.DeviceCode); r.status != http.StatusOK {
			t.Errorf("a poll from the throttled address: got %d %s, want 200", r.status, r.body)
		}
		guessDeviceCodes(t, w, right.DeviceCode)
		if trail := b.admin("trail", "--json", "--address", here); strings.Count(trail, `"throttle"`) < 1 ||
			strings.Count(trail, `"throttle"`) > 4 {
			t.Errorf("trail of the address: want 1 to 4 throttle entries: %s", trail)
		}
	}, "SERVICE_BACKEND_TRUSTED_PROXIES=192.0.2.0/24")
}

func envOf(b *remoteBackend, name string) string {
	for _, v := range b.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// guessDeviceCodes polls codes that were never issued. Every response equals the response for an unknown code, and
// the known code still works.
func guessDeviceCodes(t *testing.T, w *wire, known string) {
	t.Helper()
	var unknown string
	for i := range 150 {
		guess := known[:10] + string(rune('A'+i%26)) + string(rune('a'+i/26)) + known[12:]
		r := w.poll(guess)
		if unknown == "" {
			unknown = r.body
		}
		if guess != known && (r.status != http.StatusNotFound || r.body != unknown) {
			t.Fatalf("guess %d: got %d %s, want the response to an unknown code", i, r.status, r.body)
		}
	}
	if r := w.poll(known); r.status != http.StatusOK {
		t.Errorf("poll a known code from the guessing address: got %d %s, want 200", r.status, r.body)
	}
}

// 200 polls of a code in quick succession all return pending, with intervals that grow to the maximum, even across a
// restart. After the approval, the very next poll gets the token, even if it is early.
func TestPolling_TooFastIsSlowedNotDenied(t *testing.T) {
	trustEngines(t, func(t *testing.T, b *remoteBackend, _ func() string) {
		w := newWire(t, b, here)
		code := w.issue()
		expected, last := int64(5), time.Time{}
		for i := range 200 {
			if i == 6 || i == 100 {
				b.stop()
				b.start()
			}
			hasty := time.Since(last) < time.Duration(expected)*time.Second-time.Second // false if this machine was suspended
			last = time.Now()
			r := w.poll(code.DeviceCode)
			r.is(t, http.StatusOK)
			var p backendapi.Pending
			r.into(t, &p)
			// After a restart the backend cannot know whether the first poll is too early, so it keeps the stored interval.
			switch {
			case i == 0 || i == 6 || i == 100:
			case hasty:
				expected = min(expected+5, 60)
			default:
				expected = max(expected, p.PollIntervalSeconds)
			}
			if !p.Pending || p.PollIntervalSeconds != expected {
				t.Fatalf("poll %d: got %+v, want pending with an interval of %d s", i, p, expected)
			}
		}
		someone := newPerson(t)
		someone.approve(code.VerificationURL, "hasty@example.org")
		token := w.redeem(code.DeviceCode)
		w.send("GET", backendapi.PathAccount, "", "Authorization", "Bearer "+token).is(t, http.StatusOK)
		w.poll(code.DeviceCode).is(t, http.StatusNotFound)
	})
}
