package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/oidc"
)

func flowWeb(now func() time.Time) *Web {
	return &Web{Options: Options{Key: []byte(strings.Repeat("k", 32)), Now: now, Embedded: true}, cookie: "service-x"}
}

// flowCall returns a request with these cookies from a browser session.
func flowCall(browserID string, cookies ...*http.Cookie) *call {
	c := &call{Request: httptest.NewRequest(http.MethodGet, "/", nil), rw: httptest.NewRecorder(), browserID: browserID}
	for _, cookie := range cookies {
		c.AddCookie(cookie)
	}
	return c
}

func setCookies(c *call) []*http.Cookie { return c.rw.(*httptest.ResponseRecorder).Result().Cookies() }

func TestFlowState_ExpiresAndIsBoundToItsBrowser(t *testing.T) {
	now := time.Now()
	w := flowWeb(func() time.Time { return now })
	saved := flowCall("v.one")
	if err := w.saveFlow(saved, flowReset, "token"); err != nil {
		t.Fatal(err)
	}
	kept := setCookies(saved)[0]
	if !kept.HttpOnly || kept.SameSite != http.SameSiteLaxMode || kept.Path != "/" {
		t.Errorf("got cookie %v", kept)
	}
	var got string
	if !w.loadFlow(flowCall("v.one", kept), flowReset, &got) || got != "token" {
		t.Errorf("loaded %q, want the token", got)
	}
	other := *kept
	other.Name = w.cookie + "-" + flowVerify
	forged := *kept
	forged.Value = "x" + forged.Value
	for name, c := range map[string]*call{
		"another browser": flowCall("v.two", kept), "another flow": flowCall("v.one", &other),
		"forged": flowCall("v.one", &forged), "none": flowCall("v.one"),
	} {
		if w.loadFlow(c, flowReset, &got) || w.loadFlow(c, flowVerify, &got) {
			t.Errorf("%s: the state was loaded, want it refused", name)
		}
	}
	now = now.Add(flowLife + time.Second)
	if w.loadFlow(flowCall("v.one", kept), flowReset, &got) {
		t.Error("the state was loaded after it expired")
	}
	long := flowCall("v.one")
	if err := w.saveFlow(long, flowOIDC, strings.Repeat("x", 5000)); err == nil || len(setCookies(long)) > 0 {
		t.Error("a cookie too large for browsers was set")
	}
}

// JSON needs six bytes for some bytes of a return path. The path is either kept unchanged or dropped, and never
// prevents the sign-in.
func TestFlowState_DropsReturnPathThatIsTooLong(t *testing.T) {
	w := flowWeb(time.Now)
	for filler, kept := range map[string]bool{"&": true, "<": true, "\"": true, "\xff": false} {
		next := localPath("/account?" + strings.Repeat(filler, 1000))
		state := providerAttempt{Next: next, Attempt: oidc.Attempt{Provider: "example", State: "state"}}
		saved := flowCall("v.one")
		if err := w.saveAttempt(saved, state); err != nil {
			t.Errorf("%q: %v", filler, err)
			continue
		}
		var got providerAttempt
		ok := w.loadFlow(flowCall("v.one", setCookies(saved)...), flowOIDC, &got)
		if !ok || got.Attempt != state.Attempt || kept && got.Next != next || !kept && got.Next != "/" {
			t.Errorf("%q: loaded %v, %+v; want the attempt, with the path or /", filler, ok, got)
		}
	}
}

func FuzzFlowState(f *testing.F) {
	w := flowWeb(time.Now)
	saved := flowCall("v.one")
	if err := w.saveFlow(saved, flowReset, "token"); err != nil {
		f.Fatal(err)
	}
	good := setCookies(saved)[0].Value
	for _, s := range []string{good, good + "x", "", ".", "eyJ1IjoxfQ.", strings.Repeat("a", 5000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		var got string
		c := flowCall("v.one", &http.Cookie{Name: "service-x-" + flowReset, Value: value})
		if w.loadFlow(c, flowReset, &got) != (got != "") || got != "" && got != "token" {
			t.Fatalf("the cookie %q loads %q, want the token or nothing", value, got)
		}
	})
}
