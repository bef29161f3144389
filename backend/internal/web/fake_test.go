package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/link"
)

// fakeAccounts implements accounts, sessions and links in memory, and counts writes.
type fakeAccounts struct {
	changed string // if set, becomes the password of an account right after its sign-in

	mu       sync.Mutex
	people   map[string]string // passwords by e-mail address
	sessions map[string]account.Account
	pending  map[string]link.Code
	approved map[string]string // account IDs by code
	denied   map[string]bool
	browsers []string // the names of the browsers that signed in
	spent    bool     // whether browsers without a name have no guesses left
	busy     bool     // whether too many passwords are being checked
	opened   int
	writes   int
}

func newFake(codes ...string) *fakeAccounts {
	f := &fakeAccounts{
		people: map[string]string{}, sessions: map[string]account.Account{}, pending: map[string]link.Code{},
		approved: map[string]string{}, denied: map[string]bool{},
	}
	for _, c := range codes {
		f.pending[c] = link.Code{
			Requester: link.Requester{Host: "maple", OS: "Debian 12", Client: "claude-code 2.1", IP: "192.0.2.7"},
			CreatedAt: time.Now().Add(-2 * time.Minute), ExpiresAt: time.Now().Add(8 * time.Minute),
		}
	}
	return f
}

// expire lets a code expire.
func (f *fakeAccounts) expire(code string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	late := f.pending[code]
	late.ExpiresAt = time.Now().Add(-time.Second)
	f.pending[code] = late
}

func (f *fakeAccounts) SignUp(_ context.Context, email, password string) (account.Account, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.people[email]; ok {
		return account.Account{}, account.ErrEmailTaken
	}
	f.writes++
	f.people[email] = password
	return account.Account{ID: "id-" + email, Email: email}, nil
}

func (f *fakeAccounts) SignIn(_ context.Context, email, password, browser string) (account.Account, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	email = strings.ToLower(email)
	f.browsers = append(f.browsers, browser)
	if f.busy {
		return account.Account{}, account.ErrBusy
	}
	if f.spent && browser == "" {
		return account.Account{}, &account.TooManyGuessesError{Wait: 90 * time.Second}
	}
	if p, ok := f.people[email]; !ok || p != password {
		return account.Account{}, account.ErrBadCredentials
	}
	if f.changed != "" {
		defer func() { f.people[email] = f.changed }()
	}
	return account.Account{ID: "id-" + email, Email: email, PasswordHash: "hash of " + password}, nil
}

func (f *fakeAccounts) OpenSession(_ context.Context, accountID string, v account.Visit) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed != "" && v.PasswordHash != "" && v.PasswordHash != "hash of "+f.people[strings.TrimPrefix(accountID,
		"id-")] {
		return "", account.ErrBadCredentials
	}
	f.writes++
	f.opened++
	secret := fmt.Sprintf("secret-of-a-stored-session-%06d", f.opened)
	f.sessions[secret] = account.Account{ID: accountID, Email: strings.TrimPrefix(accountID, "id-")}
	return secret, nil
}

func (f *fakeAccounts) FindSession(_ context.Context, secret string) (account.Account, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.sessions[secret]
	if !ok {
		return account.Account{}, account.ErrNoSession
	}
	return a, nil
}

func (f *fakeAccounts) CloseSession(_ context.Context, secret string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	delete(f.sessions, secret)
	return nil
}

func (f *fakeAccounts) View(_ context.Context, code string) (link.Code, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, ok := f.pending[code]
	switch {
	case ok && time.Now().After(r.ExpiresAt):
		return r, link.ErrExpired
	case f.denied[code]:
		return r, link.ErrDenied
	case f.approved[code] != "":
		return r, link.ErrNotPending
	case !ok:
		return r, link.ErrUnknown
	}
	return r, nil
}

func (f *fakeAccounts) Approve(_ context.Context, code, accountID string) error {
	return f.decide(code, func() { f.approved[code] = accountID })
}

func (f *fakeAccounts) Throttled(context.Context) {}

func (f *fakeAccounts) Deny(_ context.Context, code string) error {
	return f.decide(code, func() { f.denied[code] = true })
}

func (f *fakeAccounts) decide(code string, act func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.pending[code]; !ok {
		return link.ErrNotPending
	}
	f.writes++
	delete(f.pending, code)
	act()
	return nil
}

func (f *fakeAccounts) writeCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

func newWeb(tb testing.TB, f *fakeAccounts, change ...func(*Options)) http.Handler {
	tb.Helper()
	o := Options{
		Accounts: f, Links: f, Key: []byte(strings.Repeat("k", minKeyBytes)),
		InstanceID: "test01", Embedded: true, SupportContact: "help@example.com", Version: "1.2.3",
	}
	for _, c := range change {
		c(&o)
	}
	w, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	mux := http.NewServeMux()
	w.Mount(mux)
	return mux
}

func newSite(t *testing.T, f *fakeAccounts, change ...func(*Options)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(newWeb(t, f, change...))
	t.Cleanup(s.Close)
	return s
}

// visitor is one browser with its own cookies. It follows redirects only when told to.
type visitor struct {
	t      *testing.T
	site   string
	client *http.Client
	host   string // host that the browser uses instead of the site's; "" for none
	page   string // body of the last response
	header http.Header
	status int
}

func visit(t *testing.T, site *httptest.Server) *visitor {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	return &visitor{t: t, site: site.URL, client: &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (v *visitor) do(req *http.Request) *visitor {
	v.t.Helper()
	if v.host != "" {
		req.Host = v.host
	}
	res, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	v.page, v.header, v.status = string(body), res.Header, res.StatusCode
	return v
}

func (v *visitor) get(path string) *visitor {
	v.t.Helper()
	req, err := http.NewRequest(http.MethodGet, v.site+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	return v.do(req)
}

// post sends a form like our own pages, unless the headers differ.
func (v *visitor) post(path string, form url.Values, header ...string) *visitor {
	v.t.Helper()
	req, err := http.NewRequest(http.MethodPost, v.site+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if len(header) == 0 {
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return v.do(req)
}

var hidden = regexp.MustCompile(`name="(csrf|seen)" value="([^"]*)"`)

// tokens returns the hidden fields of the last page.
func (v *visitor) tokens() url.Values {
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(v.page, -1) {
		form.Set(m[1], m[2])
	}
	return form
}

func (v *visitor) want(status int, texts ...string) *visitor {
	v.t.Helper()
	if v.status != status {
		v.t.Fatalf("status %d, want %d; page:\n%s", v.status, status, v.page)
	}
	for _, text := range texts {
		if !strings.Contains(v.page, text) {
			v.t.Fatalf("%q is missing from the page:\n%s", text, v.page)
		}
	}
	return v
}

// signUp creates an account with the form on the last page, and follows the redirect.
func (v *visitor) signUp(email, next string) *visitor {
	v.t.Helper()
	form := v.tokens()
	form.Set("email", email)
	form.Set("password", "correct horse battery")
	form.Set("accept", "yes")
	v.post(withNext("/signup", next), form).want(http.StatusSeeOther)
	return v.get(v.header.Get("Location"))
}
