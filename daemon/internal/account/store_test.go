package account

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/statefile"
)

const token = "svc_topsecret"

var linkedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func put(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStates(t *testing.T) {
	file := func(more string) string {
		return `{"authToken":"svc_topsecret","accountId":"acc","backendUrl":"https://a"` + more + `}`
	}
	cases := map[string]struct {
		text string
		want State
	}{
		"whole":           {file(`,"linkedAt":"2026-01-02T03:04:05Z","expiresAt":null,"scope":"account_full"`), Linked},
		"least":           {file(""), Linked},
		"unexpired":       {file(`,"expiresAt":"2999-01-01T00:00:00Z"`), Linked},
		"expired":         {file(`,"expiresAt":"2020-01-01T00:00:00Z"`), Expired},
		"empty":           {"", Corrupt},
		"null":            {"null", Corrupt},
		"an array":        {"[]", Corrupt},
		"cut":             {`{"authToken":"svc_topsec`, Corrupt},
		"no token":        {`{"accountId":"acc"}`, Corrupt},
		"wrong type":      {`{"authToken":7,"accountId":"acc"}`, Corrupt},
		"no header value": {`{"authToken":"a\r\nb","accountId":"acc"}`, Corrupt},
		"bad time":        {file(`,"expiresAt":"tomorrow"`), Corrupt},
		"too large":       {file(`,"x":"` + strings.Repeat("x", maxFile) + `"`), Corrupt},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, c.text)
			s := Open(Options{Dir: dir})
			l := s.Current()
			if l.State != c.want {
				t.Errorf("%s: %s", l.State, l.Detail)
			}
			if strings.Contains(l.Detail, "topsec") {
				t.Error("the detail contains the token:", l.Detail)
			}
			if after, _ := os.ReadFile(s.Path()); string(after) != c.text {
				t.Error("reading changed the file")
			}
		})
	}
}

func TestTokenGoesOnlyToItsBackend(t *testing.T) {
	cases := []struct {
		minted, def, asked string
		want               State
	}{
		{"https://a", "", "https://a", Linked},
		{"https://a", "", "https://a/", Linked},
		{"https://a", "", "https://b", OtherBackend},
		{"https://a", "", "embedded:", OtherBackend},
		{"embedded:1", "", "embedded:1", Linked},
		{"embedded:1", "", "embedded:2", OtherBackend},
		{"embedded:1", "", "https://a", OtherBackend},
		{"", "embedded:", "embedded:1", Linked},
		{"", "https://d", "https://d", Linked},
		{"", "https://d", "embedded:1", OtherBackend},
	}
	for _, c := range cases {
		dir := t.TempDir()
		put(t, dir, fmt.Sprintf(`{"authToken":%q,"accountId":"acc","backendUrl":%q}`, token, c.minted))
		l := Open(Options{Dir: dir, Backend: func() string { return c.def }}).For(c.asked)
		if l.State != c.want || (l.AuthToken != "") != (c.want == Linked) {
			t.Errorf("%+v: %s", c, l.State)
		}
	}
}

func TestSaveKeepsWhatItDoesNotKnow(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, `{"authToken":"old","accountId":"acc","future":{"a":1}}`)
	s := Open(Options{Dir: dir})
	s.MarkRevoked("old")
	if s.Current().State != Revoked {
		t.Error("a rejected token does not count as revoked")
	}
	if err := s.Save(Link{AuthToken: token, AccountID: "acc2", LinkedAt: linkedAt, Scope: "account_full",
		BackendURL: "https://a"}); err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	data, _ := os.ReadFile(s.Path())
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"authToken": token, "accountId": "acc2", "linkedAt": "2026-01-02T03:04:05Z", "expiresAt": nil,
		"scope": "account_full", "backendUrl": "https://a", "future": map[string]any{"a": 1.0}}
	if fmt.Sprint(file) != fmt.Sprint(want) {
		t.Errorf("auth.json holds %v; want the unknown fields as well", file)
	}
	if again := Open(Options{Dir: dir}).Current(); again.State != Linked || again.AccountID != "acc2" ||
		!again.LinkedAt.Equal(linkedAt) {
		t.Errorf("after reopening: %+v, want the new link", again)
	}
	if was, err := s.Delete(); !was || err != nil || s.Current().State != NotLinked {
		t.Error(was, err, s.Current().State)
	}
	if was, err := s.Delete(); was || err != nil {
		t.Error("second Delete: want false and no error, got", was, err)
	}
}

func TestSaveThatCannotWrite(t *testing.T) {
	dir := t.TempDir()
	s := Open(Options{Dir: dir})
	if err := os.Mkdir(filepath.Join(dir, FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	err := s.Save(Link{AuthToken: token, AccountID: "acc"})
	if err == nil || strings.Contains(err.Error(), token) {
		t.Error(err)
	}
	if l := s.Current(); !l.Linked() || l.Detail == "" {
		t.Errorf("current link %+v; want the unsaved link in memory with a reason", l)
	}
	s.Reload(t.Context()) // as after a change that the watch reported
	if l, ok := s.Unsaved(); !ok || l.AuthToken != token || !s.Current().Linked() {
		t.Error("the older file replaced the unsaved link")
	}
	if err := os.Remove(filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	s.Reload(t.Context())
	if _, ok := s.Unsaved(); ok || s.Current().Detail != "" {
		t.Errorf("Reload did not write the unsaved link once auth.json was writable: detail %q", s.Current().Detail)
	}
	if l := Open(Options{Dir: dir}).Current(); l.AuthToken != token {
		t.Errorf("auth.json holds %+v; want the unsaved token", l)
	}
}

// A logout while a link is unsaved cancels the pending write.
func TestDelete_UnsavedLink(t *testing.T) {
	dir := t.TempDir()
	s := Open(Options{Dir: dir})
	if err := os.Mkdir(filepath.Join(dir, FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(Link{AuthToken: token, AccountID: "acc"}); err == nil {
		t.Fatal("Save succeeded without a writable file")
	}
	if was, err := s.Delete(); !was || err != nil {
		t.Errorf("%v, %v", was, err)
	}
	s.Reload(t.Context())
	if _, err := os.Stat(filepath.Join(dir, FileName)); err == nil || s.Current().State != NotLinked {
		t.Errorf("after the logout: stat auth.json: %v, link %+v; want neither", err, s.Current())
	}
}

// Serve retries an unsaved link, and writes it as soon as the file is writable.
func TestServe_WritesTheUnsavedLink(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := Open(Options{Dir: dir})
		if err := os.Mkdir(filepath.Join(dir, FileName), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = s.Serve(ctx) }()
		synctest.Wait()
		if err := s.Save(Link{AuthToken: token, AccountID: "acc"}); err == nil {
			t.Fatal("Save succeeded without a writable file")
		}
		time.Sleep(saveRetry + time.Second)
		if _, ok := s.Unsaved(); !ok {
			t.Fatal("the link counts as saved although a directory is at its path")
		}
		if err := os.Remove(filepath.Join(dir, FileName)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(saveRetry + time.Second)
		if _, ok := s.Unsaved(); ok {
			t.Error("Serve did not retry the write")
		}
	})
}

// A file readable by other users is restricted before it is used, and a warning is shown until the user links again.
func TestOpen_TightensTheFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes have no effect on Windows")
	}
	for _, mode := range []os.FileMode{0o644, 0o640, 0o604, 0o666, 0o620} {
		dir := t.TempDir()
		path := filepath.Join(dir, FileName)
		put(t, dir, `{"authToken":"a","accountId":"acc"}`)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		s := Open(Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %04o became %v (error %v), want 0600", mode, info.Mode(), err)
		}
		s.Reload(t.Context())
		if l := s.Current(); !l.Linked() || !strings.Contains(l.Detail, fmt.Sprintf("%04o", mode)) ||
			!strings.Contains(log.String(), "auth.json") {
			t.Errorf("mode %04o: detail %q, log %q; want a warning in both", mode, l.Detail, log.String())
		}
		if err := s.Save(Link{AuthToken: "b", AccountID: "acc"}); err != nil || s.Current().Detail != "" {
			t.Errorf("after linking again: error %v, detail %q; want neither", err, s.Current().Detail)
		}
	}
}

// The file's values are used in headers, on terminals and in agent contexts, so they are validated like a backend's
// response.
func TestParse_Forms(t *testing.T) {
	for name, file := range map[string]string{
		"token with a space":   `{"authToken":"a b","accountId":"acc"}`,
		"token with an escape": `{"authToken":"a\u001b","accountId":"acc"}`,
		"long token": `{"authToken":"` + strings.Repeat("a", 4097) +
			`","accountId":"acc"}`, "account with an escape": `{"authToken":"a","accountId":"\u001b]52;c;x\u0007"}`,
		"account with C1": `{"authToken":"a","accountId":"a\u009b"}`, "long account": `{"authToken":"a","accountId":"` +
			strings.Repeat("a", 65) + `"}`,
		"account with a newline": `{"authToken":"a","accountId":"a\n"}`,
		"scope":                  `{"authToken":"a","accountId":"acc","scope":"\u001b"}`,
		"backend":                `{"authToken":"a","accountId":"acc","backendUrl":"https://a/\u001b[2J"}`,
		"long backend":           `{"authToken":"a","accountId":"acc","backendUrl":"https://` + strings.Repeat("a", 2048) + `"}`,
	} {
		if l, err := parse([]byte(file)); err == nil {
			t.Errorf("%s: %+v", name, l)
		} else if strings.ContainsAny(err.Error(), "\x1b\u009b\a") {
			t.Errorf("%s: the error quotes control characters: %q", name, err)
		}
	}
}

// The snapshot follows every change of the file.
func TestFollowsTheFile(t *testing.T) {
	dir := t.TempDir()
	watch := statefile.NewWatch(dir, slog.New(slog.DiscardHandler))
	s := Open(Options{Dir: dir, Changed: watch.Changed(FileName)})
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { _ = watch.Serve(ctx) })
	serving.Go(func() { _ = s.Serve(ctx) })
	defer serving.Wait()
	defer cancel()
	seen := s.Watch(ctx)
	steps := []struct {
		name string
		do   func()
		want State
	}{
		{"linked", func() { put(t, dir, `{"authToken":"a","accountId":"acc"}`) }, Linked},
		{"corrupt", func() { put(t, dir, `{"authTok`) }, Corrupt},
		{"mended", func() { put(t, dir, `{"authToken":"b","accountId":"acc"}`) }, Linked},
		{"deleted", func() { _ = os.Remove(s.Path()) }, NotLinked},
		{"a link to elsewhere", func() { _ = os.Symlink("/etc/hostname", s.Path()) }, Corrupt},
		{"directory deleted", func() { _ = os.RemoveAll(dir) }, NotLinked},
		{"directory made again", func() { _ = os.Mkdir(dir, 0o700); put(t, dir, `{"authToken":"c","accountId":"acc"}`) },
			Linked},
	}
	for _, step := range steps {
		step.do()
		late := time.After(15 * time.Second)
		for state := State(""); state != step.want; {
			select {
			case l := <-seen:
				state = l.State
			case <-late:
				t.Fatalf("%s: want %s within 15 s, got %s", step.name, step.want, s.Current().State)
			}
		}
	}
}

func TestSecretHidesItself(t *testing.T) {
	l := Link{State: Linked, AuthToken: token}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "link", l, "token", l.AuthToken)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "link", l, "token", l.AuthToken)
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{log.String(), string(data),
		fmt.Sprintf("%v %+v %#v %s %q", l, l, l, l.AuthToken, l.AuthToken)} {
		if strings.Contains(text, token) {
			t.Error("printed:", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"authToken":"svc_a","accountId":"b","linkedAt":"2026-01-02T03:04:05Z","expiresAt":null,"scope":"s","backendUrl":"embedded:1"}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"authToken":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := parse(data)
		if err != nil {
			return
		}
		if !tokenForm.MatchString(l.AuthToken.Reveal()) {
			t.Error("accepted a token that is not a valid header value")
		}
		out, err := format(data, l)
		if err != nil {
			return // RFC 3339 cannot represent this time
		}
		again, err := parse(out)
		if err != nil || again.AuthToken != l.AuthToken || again.AccountID != l.AccountID {
			t.Errorf("%q was rewritten as %q, error %v; want the same link", data, out, err)
		}
	})
}

// Removing a file right after Save is detected even though the watch saw no file last time either.
func TestServe_FileRemovedRightAfterSave(t *testing.T) {
	dir := t.TempDir()
	watch := statefile.NewWatch(dir, slog.New(slog.DiscardHandler))
	s := Open(Options{
		Dir: dir, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Changed: watch.Changed(FileName), Wrote: func(data []byte) { watch.Wrote(FileName, data) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	serving.Go(func() { _ = watch.Serve(ctx) })
	serving.Go(func() { _ = s.Serve(ctx) })
	states := s.Watch(ctx)
	if err := s.Save(Link{AuthToken: "svc_token", AccountID: "acc", LinkedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.Path()); err != nil {
		t.Fatal(err)
	}
	late := time.After(10 * time.Second)
	for { // Save's snapshot has been received, so the next NotLinked comes from the removal
		select {
		case l := <-states:
			if l.State == NotLinked {
				return
			}
		case <-late:
			t.Fatalf("the state is %s, want NotLinked", s.Current().State)
		}
	}
}
