package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/oidc"
)

func TestDeviceInPlainWords(t *testing.T) {
	for agent, want := range map[string]string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36":                                "Chrome on Windows",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0":                  "Edge on Windows",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.4 Safari/605.1.15":                          "Safari on Mac",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.4 Mobile/15E148 Safari/604.1":        "Safari on iPhone",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/141.0.7390.41 Mobile/15E148 Safari/604.1": "Chrome on iPhone",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36":            "Samsung Internet on Android",
		"Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0":                                                                         "Firefox on Linux",
		"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36":                                 "Chrome on ChromeOS",
		"Lynx/2.9.0 (Linux)":     "A browser on Linux",
		"Chromium/141":           "Chromium",
		"":                       "An unknown browser",
		"<script>alert</script>": "An unknown browser",
	} {
		if got := deviceOf(agent); got != want {
			t.Errorf("%s: %s, want %s", agent, got, want)
		}
	}
}

func TestMomentsEndAndStayInTheirBrowser(t *testing.T) {
	now := time.Now()
	w := &Web{Options: Options{Key: []byte(strings.Repeat("k", 32)), Now: func() time.Time { return now }, Embedded: true}, cookie: "service-x"}
	request := func(id string, cookies ...*http.Cookie) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for _, c := range cookies {
			r.AddCookie(c)
		}
		return r.WithContext(withBrowser(r.Context(), browser{id: id}))
	}
	rec := httptest.NewRecorder()
	if err := w.remember(rec, request("v.one"), momentReset, "token"); err != nil {
		t.Fatal(err)
	}
	kept := rec.Result().Cookies()[0]
	if !kept.HttpOnly || kept.SameSite != http.SameSiteLaxMode || kept.Path != "/" {
		t.Errorf("cookie %v", kept)
	}
	var got string
	if !w.recall(request("v.one", kept), momentReset, &got) || got != "token" {
		t.Errorf("recalled %q", got)
	}
	other := *kept
	other.Name = w.cookie + "-" + momentVerify
	forged := *kept
	forged.Value = "x" + forged.Value
	for name, r := range map[string]*http.Request{
		"another browser": request("v.two", kept), "another purpose": request("v.one", &other), "forged": request("v.one", &forged), "none": request("v.one"),
	} {
		if w.recall(r, momentReset, &got) || w.recall(r, momentVerify, &got) {
			t.Errorf("%s: recalled", name)
		}
	}
	now = now.Add(momentLife + time.Second)
	if w.recall(request("v.one", kept), momentReset, &got) {
		t.Error("recalled after its time")
	}
	if err := w.remember(httptest.NewRecorder(), request("v.one"), momentOIDC, strings.Repeat("x", 5000)); err == nil {
		t.Error("a cookie that no browser keeps was set")
	}
}

// A way back grows sixfold where JSON escapes it: it is kept as it is, or left out, and never stands in the way.
func TestTheWayBackFitsIntoAMoment(t *testing.T) {
	w := &Web{Options: Options{Key: []byte(strings.Repeat("k", 32)), Now: time.Now, Embedded: true}, cookie: "service-x"}
	for filler, kept := range map[string]bool{"&": true, "<": true, "\"": true, "\xff": false} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r = r.WithContext(withBrowser(r.Context(), browser{id: "v.one"}))
		rec := httptest.NewRecorder()
		next := localPath("/account?" + strings.Repeat(filler, 1000))
		trip := oidcTrip{Next: next, Attempt: oidc.Attempt{Provider: "example", State: "state"}}
		if err := w.remember(rec, r, momentOIDC, trip); err != nil {
			t.Errorf("%q: %v", filler, err)
			continue
		}
		r.AddCookie(rec.Result().Cookies()[0])
		var got oidcTrip
		if ok := w.recall(r, momentOIDC, &got); !ok || got.Attempt != trip.Attempt || kept && got.Next != next || !kept && got.Next != "/" {
			t.Errorf("%q: %v, %+v", filler, ok, got)
		}
	}
}

func FuzzMoment(f *testing.F) {
	w := &Web{Options: Options{Key: []byte(strings.Repeat("k", 32)), Now: time.Now, Embedded: true}, cookie: "service-x"}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r = r.WithContext(withBrowser(r.Context(), browser{id: "v.one"}))
	rec := httptest.NewRecorder()
	if err := w.remember(rec, r, momentReset, "token"); err != nil {
		f.Fatal(err)
	}
	good := rec.Result().Cookies()[0].Value
	for _, s := range []string{good, good + "x", "", ".", "eyJ1IjoxfQ.", strings.Repeat("a", 5000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		r := r.Clone(r.Context())
		r.AddCookie(&http.Cookie{Name: "service-x-" + momentReset, Value: value})
		var got string
		if w.recall(r, momentReset, &got) != (got != "") || got != "" && got != "token" {
			t.Fatalf("%q recalls %q", value, got)
		}
	})
}

func FuzzDevice(f *testing.F) {
	f.Add("Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0")
	f.Fuzz(func(t *testing.T, agent string) {
		if got := deviceOf(agent); got == "" || len(got) > 40 {
			t.Fatalf("%q is %q", agent, got)
		}
	})
}
