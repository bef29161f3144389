package api

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
	"github.com/service-dev/service/proto/backendapi"
)

func TestIssueCode(t *testing.T) {
	w := newWorld(t)
	code := w.issue()
	if !regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`).MatchString(code.UserCode) ||
		!secret.Valid(credential.DeviceCode, code.DeviceCode) ||
		code.VerificationURL != site+"/activate?code="+code.UserCode ||
		code.ExpiresInSeconds != 600 || code.PollIntervalSeconds != 5 {
		t.Errorf("got device code %+v, want one in the documented form", code)
	}
	if again := w.issue(); again.DeviceCode == code.DeviceCode || again.UserCode == code.UserCode {
		t.Error("got the same code twice, want two different codes")
	}
}

// Cancelling a code revokes its token if the token was never received, and keeps a token that is in use.
func TestCancel_RedeemedCode(t *testing.T) {
	for _, used := range []bool{false, true} {
		w := newWorld(t)
		c := w.issue()
		w.approve(c)
		var token backendapi.Token
		w.poll(c.DeviceCode).is(http.StatusOK).into(&token)
		bearer := []string{"Authorization", "Bearer " + token.AuthToken}
		if used {
			w.call("GET", backendapi.PathAccount, "", bearer...).is(http.StatusOK)
			w.cancel(c.DeviceCode).problem(http.StatusNotFound, "unknown_device_code")
			w.call("GET", backendapi.PathAccount, "", bearer...).is(http.StatusOK)
			continue
		}
		w.cancel(c.DeviceCode).is(http.StatusNoContent)
		w.call("GET", backendapi.PathAccount, "", bearer...).is(http.StatusUnauthorized)
		w.cancel(c.DeviceCode).is(http.StatusNoContent) // a repeat, as if the client had not received the first response
	}
	newWorld(t).cancel("sdc_never-issued").problem(http.StatusNotFound, "unknown_device_code")
}

// TestPollStatuses covers every status of the token endpoint.
func TestPollStatuses(t *testing.T) {
	approved := func(w *world, c backendapi.DeviceCode) { w.approve(c) }
	for _, tc := range []struct {
		name      string
		before    func(w *world, c backendapi.DeviceCode)
		status    int
		code      string
		retryable bool
	}{
		{"approved and consumed", func(w *world, c backendapi.DeviceCode) {
			w.approve(c)
			w.poll(c.DeviceCode).is(http.StatusOK)
		}, http.StatusNotFound, "unknown_device_code", false},
		{"denied", func(w *world, c backendapi.DeviceCode) {
			if err := w.links.Deny(w.Context(), c.UserCode); err != nil {
				w.Fatal(err)
			}
		}, http.StatusForbidden, "device_code_denied", true},
		{"window over", func(w *world, _ backendapi.DeviceCode) { w.pass(10 * time.Minute) },
			http.StatusGone, "device_code_expired", true},
		{"approved but not fetched within the grace period", func(w *world, c backendapi.DeviceCode) {
			w.approve(c)
			w.pass(10*time.Minute + 31*time.Second)
		}, http.StatusGone, "device_code_expired", true},
		{"cancelled", func(w *world, c backendapi.DeviceCode) {
			w.cancel(c.DeviceCode).is(http.StatusNoContent)
			w.cancel(c.DeviceCode).is(http.StatusNoContent)
		}, http.StatusForbidden, "device_code_denied", true},
		{"approved, then cancelled", func(w *world, c backendapi.DeviceCode) {
			w.approve(c)
			w.cancel(c.DeviceCode).is(http.StatusNoContent)
		}, http.StatusForbidden, "device_code_denied", true},
		{"account suspended after the approval", func(w *world, c backendapi.DeviceCode) {
			w.approve(c)
			w.operate("UPDATE accounts SET state = 'suspended'")
		}, http.StatusForbidden, "device_code_denied", true},
		{"pending", func(*world, backendapi.DeviceCode) {}, http.StatusOK, "", false},
		{"approved", approved, http.StatusOK, "", false},
		{"approved in time, fetched within the grace period", func(w *world, c backendapi.DeviceCode) {
			w.approve(c)
			w.pass(10*time.Minute + 29*time.Second)
		}, http.StatusOK, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			code := w.issue()
			tc.before(w, code)
			if got := w.poll(code.DeviceCode); tc.code == "" {
				got.is(tc.status)
			} else if p := got.problem(tc.status, tc.code); p.Retryable != tc.retryable {
				t.Errorf("got retryable %v, want the opposite", p.Retryable)
			}
		})
	}
}

func TestPoll_UnknownCodes(t *testing.T) {
	w := newWorld(t)
	for _, code := range []string{secret.New(credential.DeviceCode), "sdc_nonsense", "x", strings.Repeat("x", 60_000),
		"' OR 1=1 --", "\x00"} {
		w.poll(code).problem(http.StatusNotFound, "unknown_device_code")
	}
	w.poll("").problem(http.StatusBadRequest, "invalid_request")
}

func TestPollBodies(t *testing.T) {
	w := newWorld(t)
	code := w.issue()
	if got := w.poll(code.DeviceCode).is(http.StatusOK); string(got.body) != `{"pending":true,"pollIntervalSeconds":5}`+"\n" {
		t.Errorf("first poll: got %s, want pending", got.body)
	}
	if got := w.poll(code.DeviceCode).is(http.StatusOK); string(got.body) != `{"pending":true,"pollIntervalSeconds":10}`+"\n" {
		t.Errorf("second poll within the interval: got %s, want a longer interval", got.body)
	}
	w.approve(code)
	var token backendapi.Token
	got := w.poll(code.DeviceCode).is(http.StatusOK).into(&token)
	if !secret.Valid(credential.Token, token.AuthToken) {
		t.Error("got a token of the wrong form")
	}
	want := fmt.Sprintf(`{"authToken":%q,"accountId":%q,"tier":"free_account","linkedAt":"2026-01-02T03:04:05.000Z","expiresAt":null}`+"\n",
		token.AuthToken, w.ada.ID)
	if string(got.body) != want {
		t.Errorf("poll of an approved code: got %s\nwant %s", got.body, want)
	}
}

// Users decide based on the requester's description of itself, so its texts must not distort the page.
func TestRequester_IsSanitised(t *testing.T) {
	w := newWorld(t)
	code := w.issue(
		backendapi.HeaderHost, "maple\u202e\u200b\u2066gpj\u0085\tx\xff", // direction marks, zero width, controls, bad UTF-8
		backendapi.HeaderOS, strings.Repeat("ö", 101),
		backendapi.HeaderClient, "Ünïcode 端末 1.0",
		ipHeader, "192.0.2.7")
	shown, err := w.links.View(t.Context(), code.UserCode)
	if err != nil {
		t.Fatal(err)
	}
	if r := shown.Requester; r.Host != "maplegpjx" || r.OS != strings.Repeat("ö", 100) || r.Client != "Ünïcode 端末 1.0" ||
		r.IP != "192.0.2.7" {
		t.Errorf("got requester %+q, want sanitised texts", r)
	}
}
