//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// issued is a device code, requested as a daemon would request it.
type issued struct {
	DeviceCode, UserCode, VerificationURL string
}

func issueCode(t *testing.T, b *remoteBackend) issued {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.url+"/api/auth/device/code",
		strings.NewReader(`{"scope":"account_full"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Service-Host", "ada's laptop")
	req.Header.Set("X-Service-Os", "linux/amd64")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var code issued
	if err := json.NewDecoder(resp.Body).Decode(&code); err != nil {
		t.Fatal(err)
	}
	return code
}

// poll polls once and returns status and body of the response.
func (c issued) poll(t *testing.T, b *remoteBackend) (int, string) {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"deviceCode": c.DeviceCode})
	resp, err := http.Post(b.url+"/api/auth/device/token", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func (c issued) mustBePending(t *testing.T, b *remoteBackend, after string) {
	t.Helper()
	if status, body := c.poll(t, b); status != 200 || !strings.Contains(body, `"pending":true`) {
		t.Errorf("poll after %s: got %d %s, want pending", after, status, body)
	}
}

// Only the browser that viewed a code first can approve it.
func TestActivationPage_ApprovalIsBoundToBrowser(t *testing.T) {
	t.Parallel()
	b := startBackend(t, newPostgres(t))
	code, other := issueCode(t, b), issueCode(t, b)
	ada, bob := newPerson(t), newPerson(t)
	ada.open(code.VerificationURL)
	ada.submit("/signup", "email", "ada@example.org", "password", password, "accept", "yes")
	action, adas := ada.form("/activate/approve")

	bob.open(other.VerificationURL)
	bob.submit("/signup", "email", "bob@example.org", "password", password, "accept", "yes")
	_, bobs := bob.form("/activate/approve")
	for what, fields := range map[string]url.Values{"A's form in B's browser": adas,
		"B's form for another code": bobs} {
		bob.post(action, fields, "")
		if bob.status != http.StatusForbidden {
			t.Errorf("%s: status %d, want 403", what, bob.status)
		}
		code.mustBePending(t, b, what)
	}
	ada.submit("/activate/approve")
	if status, body := code.poll(t, b); status != 200 || !strings.Contains(body, "authToken") {
		t.Errorf("poll after A's own approval: got %d %s, want a token", status, body)
	}
}

// A request from a page of another site or without the form's token changes nothing, and neither does any GET or
// HEAD.
func TestPages_ForeignPostsChangeNothing(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	code := issueCode(t, b)
	ada := newPerson(t)
	ada.open(code.VerificationURL)
	ada.submit("/signup", "email", "ada@example.org", "password", password, "accept", "yes")
	action, fields := ada.form("/activate/approve")
	without := url.Values{"seen": fields["seen"]}
	foreign := url.Values{"seen": fields["seen"], "csrf": {strings.Repeat("A", len(fields.Get("csrf")))}}

	for what, try := range map[string]func(){
		"a foreign origin":      func() { ada.post(action, fields, "https://evil.example") },
		"no CSRF token":         func() { ada.post(action, without, "") },
		"somebody's CSRF token": func() { ada.post(action, foreign, "") },
		"the approval as a GET": func() { ada.open(action + "&" + fields.Encode()) },
		"the denial as a GET": func() {
			ada.open(strings.Replace(action, "approve", "deny",
				1) + "&" + fields.Encode())
		},
		"a foreign origin's deny": func() {
			ada.post(strings.Replace(action, "approve", "deny", 1), fields,
				"https://evil.example")
		},
	} {
		try()
		if ada.status < 400 {
			t.Errorf("%s: status %d, want 400 or more", what, ada.status)
		}
		code.mustBePending(t, b, what)
	}
	resp, err := ada.client.Head(action)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	code.mustBePending(t, b, "a HEAD")
}

// The activation page shows what the user must check, and follows the rules for headers and content.
func TestActivationPage_Content(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	code := issueCode(t, b)
	resp, err := http.Get(code.VerificationURL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, _ := io.ReadAll(resp.Body)
	for _, want := range []string{code.UserCode, "ada&#39;s laptop", "linux/amd64", "127.0.0.1", "Deny"} {
		if !strings.Contains(string(page),
			want) && !strings.Contains(strings.ReplaceAll(string(page), "::1", "127.0.0.1"), want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	for _, input := range strings.Split(string(page), "<input")[1:] {
		if strings.Contains(strings.SplitN(input, ">", 2)[0], code.UserCode) {
			t.Error("an input field contains the code")
		}
	}
	for header, want := range map[string]string{"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		"Cache-Control": "no-store", "Content-Security-Policy": "frame-ancestors 'none'"} {
		if !strings.Contains(resp.Header.Get(header), want) {
			t.Errorf("unexpected value of %s: %q", header, resp.Header.Get(header))
		}
	}
	for _, outside := range []string{`src="http`, `href="http`, "@import"} {
		if strings.Contains(string(page), outside) {
			t.Errorf("the page refers to another origin: %s", outside)
		}
	}
	odd, err := http.Get(b.url + "/activate?code=" + url.QueryEscape("<script>alert(1)</script>"))
	if err != nil {
		t.Fatal(err)
	}
	defer odd.Body.Close()
	text, _ := io.ReadAll(odd.Body)
	if strings.Contains(string(text), "<script>alert") {
		t.Error("a script in the code parameter is not escaped")
	}
}
