//go:build unix

package account

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// The values from which the model picks. A token's name indicates the backend that issued it.
const defaultBackend = "https://d"

var (
	mintedAt = map[string]string{"svc_a": "https://a", "svc_a2": "https://a", "svc_b": "https://b", "svc_e": "embedded:1",
		"svc_d": defaultBackend}
	tokens = slices.Sorted(maps.Keys(mintedAt))
	asked  = []string{"https://a", "https://a/", "https://b", defaultBackend, "embedded:1", "embedded:2", "embedded:",
		""}
	broken = []string{"", "null", "[]", `{"authToken":"svc_`, `{"authToken":7,"accountId":"x","theirs":1}`,
		`{"accountId":"x","theirs":1}`}
)

// content is the model's view of auth.json.
type content struct {
	kind    string // none, good, broken, link
	token   string
	expires time.Time // zero for never
	theirs  bool      // whether it has an unknown field, which a login keeps
	text    string    // the exact text if another program wrote it
	bare    bool      // another program wrote it without backendUrl, and the store has not read it yet
}

// model is the reference implementation: the file's content, the link in memory, and each backend's verdicts on
// tokens.
type model struct {
	dir      string
	now      time.Time
	file     content
	memory   content
	unsaved  bool // memory holds a link that could not be written
	revoked  map[string]bool
	verified map[string]bool

	store   *Store
	changed chan struct{}
	stop    context.CancelFunc
	served  chan struct{}
	watched <-chan Link
}

func (m *model) open() {
	ctx, stop := context.WithCancel(context.Background())
	m.changed, m.stop, m.served = make(chan struct{}, 1), stop, make(chan struct{})
	m.store = Open(Options{Dir: m.dir, Backend: func() string { return defaultBackend }, Changed: m.changed,
		Now: func() time.Time { return m.now }})
	m.readFile()
	m.memory, m.unsaved, m.revoked, m.verified = m.file, false, map[string]bool{}, map[string]bool{}
	m.watched = m.store.Watch(ctx)
	go func() { defer close(m.served); _ = m.store.Serve(ctx) }()
}

func (m *model) close() {
	m.stop()
	<-m.served
}

// view is the part of a link's state that a caller can observe.
type view struct {
	state                   State
	token, account, backend string
	verified                bool
}

func viewOf(l Link) view {
	return view{l.State, l.AuthToken.Reveal(), l.AccountID, l.BackendURL, l.Verified.OK}
}

// want returns what Current must return.
func (m *model) want() view {
	c := m.memory
	switch c.kind {
	case "none":
		return view{state: NotLinked}
	case "good":
		v := view{Linked, c.token, accountOf(c.token), mintedAt[c.token], m.verified[c.token]}
		if m.revoked[c.token] {
			v.state = Revoked
		} else if !c.expires.IsZero() && !m.now.Before(c.expires) {
			v.state = Expired
		}
		return v
	}
	return view{state: Corrupt}
}

func accountOf(token string) string { return "acc_" + token }

// wantFor returns what For must return: no token for a backend other than the issuer.
func (m *model) wantFor(backend string) view {
	v := m.want()
	if v.token == "" {
		return v
	}
	at := strings.TrimRight(backend, "/")
	if at == v.backend || (at == "" || at == "embedded:") && strings.HasPrefix(v.backend, "embedded:") {
		return v
	}
	v.state, v.token, v.verified = OtherBackend, "", false
	return v
}

// check compares store and file with the model.
func (m *model) check(t *rapid.T) {
	if got := viewOf(m.store.Current()); got != m.want() {
		t.Fatalf("current: %+v, want %+v", got, m.want())
	}
	for _, b := range asked {
		if got := viewOf(m.store.For(b)); got != m.wantFor(b) {
			t.Fatalf("for %q: %+v, want %+v", b, got, m.wantFor(b))
		}
	}
	info, err := os.Lstat(m.path())
	switch kind := m.file.kind; {
	case kind == "none":
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("stat auth.json: %v, want ErrNotExist", err)
		}
	case err != nil || (info.Mode()&fs.ModeSymlink != 0) != (kind == "link"):
		t.Fatalf("auth.json: %v, %v; want %s", info, err, kind)
	case kind != "link":
		m.checkFile(t, info)
	}
	if entries, _ := os.ReadDir(m.dir); len(entries) > 2 { // auth.json and the target of the symbolic link
		t.Fatalf("files were left behind: %v", entries)
	}
}

func (m *model) path() string { return filepath.Join(m.dir, FileName) }

func (m *model) checkFile(t *rapid.T, info fs.FileInfo) {
	data, err := os.ReadFile(m.path())
	if err != nil {
		t.Fatal(err)
	}
	if m.file.text != "" || m.file.kind == "broken" {
		if string(data) != m.file.text {
			t.Fatalf("content written by another program was changed: %q", data)
		}
		return
	}
	l, err := parse(data)
	if err != nil || l.AuthToken.Reveal() != m.file.token || l.BackendURL != mintedAt[m.file.token] ||
		strings.Contains(string(data), "theirs") != m.file.theirs || info.Mode().Perm() != 0o600 {
		t.Fatalf("auth.json is %s (%v, mode %v), want %+v", data, err, info.Mode(), m.file)
	}
}

// heard checks that a watcher which reads late gets the latest state immediately.
func (m *model) heard(t *rapid.T) {
	select {
	case l := <-m.watched:
		if got := viewOf(l); got != m.want() {
			t.Fatalf("the watcher received %+v, want %+v", got, m.want())
		}
	default:
		t.Fatal("the watcher did not receive a change")
	}
}

// amid makes a change while other goroutines read. They must see the state before or after it, and never
// another backend's token.
func (m *model) amid(t *rapid.T, change func()) {
	before := m.want()
	seen := make(chan view, 64)
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for range 3 {
				seen <- viewOf(m.store.Current())
				for _, b := range asked {
					if l := m.store.For(b); l.AuthToken != "" && !sameBackend(mintedAt[l.AuthToken.Reveal()], b) {
						seen <- view{state: "leaked to " + State(b)}
					}
				}
			}
		})
	}
	go func() { readers.Wait(); close(seen) }()
	change()
	m.heard(t)
	after := m.want()
	for v := range seen {
		if v != before && v != after {
			t.Fatalf("during the change a reader saw %+v; want %+v or %+v", v, before, after)
		}
	}
}

func (m *model) link(t *rapid.T) Link {
	token := rapid.SampledFrom(tokens).Draw(t, "token")
	l := Link{AuthToken: Secret(token), AccountID: accountOf(token), BackendURL: mintedAt[token], LinkedAt: m.now,
		Scope: "account_full"}
	if rapid.Bool().Draw(t, "legacy") {
		at := m.now.Add(time.Duration(rapid.IntRange(-2, 5).Draw(t, "hours")) * time.Hour).Truncate(time.Second)
		l.ExpiresAt = &at
	}
	return l
}

func contentOf(l Link) content {
	c := content{kind: "good", token: l.AuthToken.Reveal()}
	if l.ExpiresAt != nil {
		c.expires = *l.ExpiresAt
	}
	return c
}

// outside writes auth.json as another program would: in place or by renaming a file.
func (m *model) outside(t *rapid.T, text string) {
	if m.file.kind == "link" || rapid.Bool().Draw(t, "by rename") {
		aside := filepath.Join(m.dir, "aside")
		if err := errors.Join(os.WriteFile(aside, []byte(text), 0o600), os.Rename(aside, m.path())); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(m.path(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// signal reports a file change to the store, as the directory watch does.
func (m *model) signal() {
	m.changed <- struct{}{}
	time.Sleep(2 * settleTime)
	switch {
	case !m.unsaved:
		m.readFile()
		m.memory = m.file
	case m.file.kind != "link": // the file can be written again
		m.saved(m.memory)
	}
}

// readFile updates the model after the store read the file and, if necessary, added the backend.
func (m *model) readFile() {
	if m.file.bare {
		m.file.bare, m.file.text = false, ""
	}
}

// saved updates the model after a link was written to the file.
func (m *model) saved(c content) {
	c.theirs = m.file.theirs
	m.file, m.unsaved = c, false
}

// changedOutside records the file's new content. The file watch triggers a store with an unsaved link before the
// store's own next attempt.
func (m *model) changedOutside(c content) {
	if m.file = c; m.unsaved {
		m.signal()
	}
}

// For any order of logins, logouts, restarts and changes by other programs and backends, the store agrees with the
// file, keeps unknown fields, and returns a token only for the backend that issued it.
func TestStoreAgainstAModel(t *testing.T) {
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		if err := flag.Set("rapid.checks", "1000"); err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		// Hides Deadline, which panics in a synctest bubble.
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			n++
			m := &model{dir: filepath.Join(root, fmt.Sprint(n)), now: time.Now(), file: content{kind: "none"}}
			if err := os.Mkdir(m.dir, 0o700); err != nil {
				rt.Fatal(err)
			}
			m.open()
			defer func() { m.close() }()
			<-m.watched
			rt.Repeat(m.actions())
		})
	})
}
