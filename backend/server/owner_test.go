package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/service-dev/service/test/browser"
)

// serveWith runs an embedded backend as start does, on a system that can or cannot determine the owners of
// connections.
func serveWith(t *testing.T, dir string, probe func() error) (s *Server, stop func()) {
	t.Helper()
	s, err := New(t.Context(), Options{DataDir: dir, Probe: probe})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	return s, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
}

// visitor is a browser without scripts.
type visitor struct {
	t      *testing.T
	client *http.Client
}

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := browser.Transport()
	t.Cleanup(transport.CloseIdleConnections)
	return &visitor{t, &http.Client{Jar: jar, Transport: transport}}
}

// get returns a page and the path at which redirects ended.
func (v *visitor) get(address string) (page, path string) {
	v.t.Helper()
	resp, err := v.client.Get(address)
	return v.read(resp, err)
}

func (v *visitor) read(resp *http.Response, err error) (page, path string) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return string(data), resp.Request.URL.Path
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)

// send opens a form's page and posts the form.
func (v *visitor) send(address string, fields ...string) (page, path string) {
	v.t.Helper()
	page, _ = v.get(address)
	form := url.Values{}
	for _, in := range hidden.FindAllStringSubmatch(page, -1) {
		form.Set(in[1], in[2])
	}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	resp, err := v.client.PostForm(address, form)
	return v.read(resp, err)
}

const (
	adaMail     = "ada@example.org"
	adaPassword = "a password of ten letters"
)

// If the owners of connections cannot be determined, signing up or signing in requires the sign-in word. The word is
// in a file that only the service's user can read, and each start creates a new one.
func TestSignInAsksForTheWordWhereOwnersAreUnknown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backend")
	unknown := func() error { return errors.New("no such table") }
	s, stop := serveWith(t, dir, unknown)
	word := s.SignInWord()
	path := filepath.Join(dir, wordFile)
	if data, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(data)) != word || len(word) != 10 {
		t.Fatalf("the word is %q, but its file contains %q, error %v; want ten letters in both", word, data, err)
	}
	mode(t, path, 0o600)
	ada := newVisitor(t)
	for _, wrong := range []string{"", "x", word + "x", strings.Repeat("b", 10)} {
		page, _ := ada.send(s.URL()+"/signup", "email", adaMail, "password", adaPassword, "accept", "yes", "word", wrong)
		if !strings.Contains(page, `id="word-error"`) || strings.Contains(page, word) {
			t.Fatalf("signing up with the word %q: got %s, want an error", wrong, page)
		}
	}
	if _, at := ada.send(s.URL()+"/signup", "email", adaMail, "password", adaPassword, "accept", "yes", "word", " "+strings.ToUpper(word)); at != "/account" {
		t.Fatalf("signing up with the word led to %s, want /account", at)
	}
	if _, at := ada.get(s.URL() + "/account"); at != "/account" {
		t.Fatalf("after signing up, /account led to %s, want /account", at)
	}
	stop()

	s, stop = serveWith(t, dir, unknown)
	defer stop()
	if s.SignInWord() == word {
		t.Error("the word did not change at the restart")
	}
	// Another process may have occupied the port, and owners are unknown, so the browser is signed out and told why.
	page, at := ada.get(s.URL() + "/account")
	if at != "/signin" || !strings.Contains(page, "Every browser was signed out") {
		t.Errorf("after a restart the browser is at %s, want /signin", at)
	}
	if page, _ := ada.send(s.URL()+"/signin", "email", adaMail, "password", adaPassword); !strings.Contains(page, `id="word-error"`) {
		t.Error("signed in without the word")
	}
	if _, at := ada.send(s.URL()+"/signin", "email", adaMail, "password", adaPassword, "word", s.SignInWord()); at != "/account" {
		t.Errorf("signing in with the word led to %s, want /account", at)
	}
}

// If owners can be determined, no sign-in word is needed. A restart on the same port keeps browsers signed in; a
// restart on another port does not.
func TestBrowserSessionsEndWhenThePortHadToChange(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backend")
	known := func() error { return nil }
	s, stop := serveWith(t, dir, known)
	ada := newVisitor(t)
	if page, at := ada.send(s.URL()+"/signup", "email", adaMail, "password", adaPassword, "accept", "yes"); at != "/account" || s.SignInWord() != "" || strings.Contains(page, `name="word"`) {
		t.Fatalf("signing up led to %s, want /account", at)
	}
	stop()
	s, stop = serveWith(t, dir, known)
	if _, at := ada.get(s.URL() + "/account"); at != "/account" {
		t.Errorf("after a restart the browser is at %s, want /account", at)
	}
	if _, err := os.Stat(filepath.Join(dir, wordFile)); err == nil {
		t.Error("a file with a sign-in word exists, want none")
	}
	old := s.URL()
	stop()
	port, _ := strconv.Atoi(old[strings.LastIndex(old, ":")+1:])
	taken, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s, stop = serveWith(t, dir, known)
	defer stop()
	page, at := ada.get(s.URL() + "/account")
	if s.URL() == old || at != "/signin" || !strings.Contains(page, "Every browser was signed out") {
		t.Errorf("after a restart at %s the browser is at %s, want /signin at a new address", s.URL(), at)
	}
}

func TestNewWord(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		w := newWord()
		if len(w) != 10 || strings.Trim(w, wordLetters) != "" || seen[w] {
			t.Fatalf("got the invalid or repeated word %q", w)
		}
		seen[w] = true
	}
}
