//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/test/chromium"
)

// agentPage is a page that an agent serves on its own port of this computer. It records the cookies that it receives.
type agentPage struct {
	port string

	mu    sync.Mutex
	got   []*http.Cookie
	plant []*http.Cookie // cookies that it sets
}

func newAgentPage(t *testing.T) *agentPage {
	t.Helper()
	p := &agentPage{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if r.URL.Path == "/" { // ignores the icon
			p.got = r.Cookies()
		}
		for _, c := range p.plant {
			http.SetCookie(w, c)
		}
		_, _ = w.Write([]byte("<!doctype html><title>My app</title><p>My app"))
	}))
	t.Cleanup(server.Close)
	_, p.port, _ = net.SplitHostPort(server.Listener.Addr().String())
	return p
}

// visit opens the page at a host, and returns the cookies that the browser sent.
func (p *agentPage) visit(t *testing.T, browser context.Context, host string) []*http.Cookie {
	t.Helper()
	run(t, browser, "open the agent's page", chromedp.Navigate("http://"+host+":"+p.port+"/"),
		until(`document.title === "My app"`))
	return p.cookies()
}

// cookies returns the cookies of the last request.
func (p *agentPage) cookies() []*http.Cookie {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got
}

// withCookies returns a user whose browser has the cookies of a site.
func withCookies(t *testing.T, site *url.URL, cookies []*http.Cookie) *person {
	t.Helper()
	thief := newPerson(t)
	thief.client.Jar.SetCookies(site, cookies)
	return thief
}

// An agent serves a page on its own port, which the owner opens. At localhost the page receives no cookie of the
// embedded backend. Under the host name of the backend's pages it does, but with only the cookie it can neither
// approve its own code nor raise its access nor get a key or a passkey.
func TestEmbeddedBackend_CookieGivesNoAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	b := &remoteBackend{url: backendURL(t, w)}
	browser, page := newBrowser(t), newAgentPage(t)
	linked := issueCode(t, b)
	site := mustParse(t, linked.VerificationURL)
	if !strings.HasPrefix(site.Hostname(), "service-") || !strings.HasSuffix(site.Hostname(), ".localhost") {
		t.Fatalf("the approval page is at %s, want a host name of its own", site.Host)
	}
	approve(t, browser, linked.VerificationURL, linked.UserCode, "ada@example.org")
	token := linked.token(t, b)
	status, body := withToken(t, http.MethodPost, b.url+"/api/sessions", token, `{"project":"com.example.hello"}`)
	if status >= 300 {
		t.Fatalf("make a project: got %d %s", status, body)
	}

	for _, host := range []string{"localhost", "127.0.0.1"} {
		if got := page.visit(t, browser, host); len(got) > 0 {
			t.Errorf("at %s the browser sent the agent's page the cookies %v, want none", host, got)
		}
	}
	stolen := page.visit(t, browser, site.Hostname())
	if len(stolen) == 0 {
		t.Fatal("at the name of the backend's pages the browser sent no cookie; the rest of this test proves nothing")
	}
	thief := withCookies(t, site, stolen)
	at := "http://" + site.Host

	own := issueCode(t, b)
	for _, guess := range [][]string{nil, {"password", "a wrong password"}, {"proof", "x"}, {"credential", "{}"}} {
		thief.open(own.VerificationURL)
		thief.submit("/activate/approve", guess...)
		own.mustBePending(t, b, "an approval with the cookie and "+strings.Join(guess, " "))
	}

	thief.open(at + "/account/mcp-access")
	thief.submit("/account/mcp-access/default", "analytics", "read_write")
	thief.wantRefused("raise the default access")
	thief.open(at + "/account/mcp-access?project=com.example.hello")
	thief.submit("/account/mcp-access", "analytics", "read_write")
	thief.wantRefused("raise the access to a project")
	thief.open(at + "/account/mcp-access/all?level=read_write")
	thief.submit("/account/mcp-access/all")
	thief.wantRefused("raise the access to all projects")
	_, body = withToken(t, http.MethodGet, b.url+"/api/projects/com.example.hello", token, "")
	if strings.Contains(body, `"analytics":"read_write"`) {
		t.Errorf("the access was raised: %s", body)
	}

	thief.open(at + "/account/projects/com.example.hello")
	thief.submit("/account/projects/com.example.hello/keys", "name", "stolen")
	thief.wantRefused("make a key")
	thief.open(at + "/account/settings")
	_, fields := thief.form("/account/settings/passkeys")
	thief.post(at+"/account/settings/passkeys/begin", fields, "")
	if thief.status != http.StatusConflict || strings.Contains(thief.text(), "challenge") {
		t.Errorf("add a passkey: status %d %s, want a refusal", thief.status, thief.text())
	}

	// With the password, the owner can do the same.
	run(t, browser, "name a key", chromedp.Navigate(at+"/account/projects/com.example.hello"),
		chromedp.WaitVisible("#key-name"), chromium.Type("#key-name", "mine"), chromedp.Submit("#key-name"),
		chromedp.WaitVisible("#prove"))
	run(t, browser, "make it", chromium.Type("#password", password), chromedp.Submit("#password"),
		chromedp.WaitVisible("#key"))
}

// wantRefused checks that the last form led to the page that asks for a proof.
func (p *person) wantRefused(what string) {
	p.t.Helper()
	if p.status >= 300 || !strings.Contains(p.text(), "Your password") {
		p.t.Errorf("%s: status %d at %s, want the page that asks for the password\n%s", what, p.status, p.at, p.text())
	}
}

// An agent's page replaces the owner's session with the agent's own session. If the owner then approves with the
// owner's password, the agent's account is not linked.
func TestEmbeddedBackend_PlantedSessionLinksNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	b := &remoteBackend{url: backendURL(t, w)}
	browser, page := newBrowser(t), newAgentPage(t)
	first, second := issueCode(t, b), issueCode(t, b)
	approve(t, browser, first.VerificationURL, first.UserCode, "ada@example.org")
	site := mustParse(t, first.VerificationURL)

	mallory := newPerson(t)
	mallory.open("http://" + site.Host + "/signup")
	mallory.submit("/signup", "email", "mallory@example.org", "password", "another good password", "accept", "yes")
	for _, c := range mallory.client.Jar.Cookies(site) {
		page.plant = append(page.plant, &http.Cookie{Name: c.Name, Value: c.Value, Path: "/"})
	}
	page.visit(t, browser, site.Hostname())
	run(t, browser, "approve as usual", chromedp.Navigate(second.VerificationURL), chromedp.WaitVisible("#password"),
		chromium.Type("#password", password), chromedp.Click("#approve"), chromedp.WaitVisible("#password-error"))
	if text := textOf(t, browser, "#password-error"); !strings.Contains(text, "not your current password") {
		t.Errorf("the page says %q, want that the password is wrong", text)
	}
	second.mustBePending(t, b, "the owner's approval in the agent's session")
}

// token redeems an approved code.
func (c issued) token(t *testing.T, b *remoteBackend) string {
	t.Helper()
	status, body := c.poll(t, b)
	var answer struct{ AuthToken string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.AuthToken == "" {
		t.Fatalf("poll after the approval: got %d %s, want a token", status, body)
	}
	return answer.AuthToken
}

// withToken makes an API request with a bearer token.
func withToken(t *testing.T, method, address, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// axe-core finds no violations on the pages that ask for a proof, which only an embedded backend has.
func TestEmbeddedBackend_PagesThatAskForAProof(t *testing.T) {
	t.Parallel()
	axe := axeSource(t)
	w := newWorld(t, "")
	b := &remoteBackend{url: backendURL(t, w)}
	browser := newBrowser(t)
	first, second := issueCode(t, b), issueCode(t, b)
	approve(t, browser, first.VerificationURL, first.UserCode, "ada@example.org")
	run(t, browser, "open another code", chromedp.Navigate(second.VerificationURL), chromedp.WaitVisible("#password"))
	checkPage(t, browser, axe, "approve-password", "", maxPage)
	run(t, browser, "enter a wrong password", chromium.Type("#password", "not the password"),
		chromedp.Click("#approve"), chromedp.WaitVisible("#password-error"))
	checkPage(t, browser, axe, "approve-wrong-password", "", maxPage)
	site := mustParse(t, first.VerificationURL)
	run(t, browser, "lower the access", chromedp.Navigate("http://"+site.Host+"/account/mcp-access/all?level=off"),
		chromedp.Click("main button[type=submit]"), until(`document.querySelector("[role=status]")`))
	run(t, browser, "raise the access", chromedp.Navigate("http://"+site.Host+"/account/mcp-access/all?level=read"),
		chromedp.Click("main button[type=submit]"), chromedp.WaitVisible("#prove"))
	checkPage(t, browser, axe, "prove", "", maxPage)
	run(t, browser, "enter a wrong password", chromium.Type("#password", "not the password"),
		chromedp.Submit("#password"), chromedp.WaitVisible("#password-error"))
	checkPage(t, browser, axe, "prove-wrong-password", "", maxPage)
	run(t, browser, "enter the password", chromium.Type("#password", password), chromedp.Submit("#password"),
		until(`document.querySelector("[role=status]")`))
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
