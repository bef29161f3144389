package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/internal/textfile"
)

// settleTime is how long to wait for another program to finish writing a file that cannot be parsed
// yet.
const settleTime = 100 * time.Millisecond

// Options configures a Store.
type Options struct {
	// Dir is the state directory.
	Dir string
	// Backend returns the backend in use, regardless of environment variables of a caller's shell. The store adds it to
	// a file without backendUrl. If Backend is nil, the store adds the embedded backend.
	Backend func() string
	// Changed receives a value when auth.json may have changed (see statefile.Watch). It may be nil.
	Changed <-chan struct{}
	// Wrote is called with the content that the store has written, or with nil after it has removed the file. It may be
	// nil.
	Wrote func(data []byte)
	Now   func() time.Time
	Log   *slog.Logger
}

// Store owns the link. It is safe for concurrent use.
type Store struct {
	o    Options
	path string

	writing sync.Mutex // held from reading the file until it is replaced
	first   origin     // backend of the last file without backendUrl; guarded by writing

	mu   sync.Mutex
	link Link // the file's content, or a link that could not be saved
	// unsaved is the reason why link could not be written; empty if it was written.
	unsaved string
	// exposed is the mode that auth.json had while other users could access it; 0 if they could not.
	exposed  fs.FileMode
	revoked  map[Secret]bool
	verified map[Secret]Verdict
	watchers map[chan Link]struct{}
	failed   chan struct{} // signals a failed write
}

// Open reads auth.json. An unreadable file is not an error; the link's state reports it.
func Open(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Backend == nil {
		o.Backend = func() string { return embedded }
	}
	s := &Store{
		o: o, path: filepath.Join(o.Dir, FileName), revoked: map[Secret]bool{}, verified: map[Secret]Verdict{},
		watchers: map[chan Link]struct{}{}, failed: make(chan struct{}, 1),
	}
	s.link = s.load(context.Background())
	return s
}

// Path returns the file's absolute path.
func (s *Store) Path() string { return s.path }

// saveRetry is the interval at which a failed write of the link, or of its backend, is retried.
const saveRetry = 5 * time.Second

// Serve follows changes to the file and retries failed writes until ctx ends.
func (s *Store) Serve(ctx context.Context) error {
	var retry <-chan time.Time
	for {
		if retry == nil && s.isUnwritten() {
			retry = time.After(saveRetry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.o.Changed:
			s.Reload(ctx)
		case <-s.failed:
		case <-retry:
			retry = nil
			if s.isUnwritten() {
				s.Reload(ctx)
			}
		}
	}
}

// isUnwritten reports whether the link, or its backend, is missing from the file.
func (s *Store) isUnwritten() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unsaved != "" || s.link.State == OtherBackend
}

// Unsaved returns the link that could not be written yet; ok is false if there is no such link.
func (s *Store) Unsaved() (Link, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link, s.unsaved != ""
}

// flush tries again to write the unsaved link; unsaved is false if there is none. That link takes precedence over the
// file, because it is the user's latest action. The caller holds s.writing.
func (s *Store) flush() (unsaved bool) {
	l, unsaved := s.Unsaved()
	if unsaved && s.write(l) == nil {
		s.o.Log.Info("saved the link to auth.json after an earlier failure")
	}
	return unsaved
}

// Reload reads the file again.
func (s *Store) Reload(ctx context.Context) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.flush() {
		return
	}
	if l := s.load(ctx); ctx.Err() == nil {
		s.set(l)
	}
}

// load reads the file. If it does not parse, load reads it again after settleTime.
func (s *Store) load(ctx context.Context) Link {
	l := s.read()
	if l.State != Corrupt {
		return l
	}
	select {
	case <-ctx.Done():
	case <-time.After(settleTime):
	}
	if l = s.read(); l.State == Corrupt {
		s.o.Log.Warn("failed to parse auth.json; this install is not linked", "err", l.Detail)
	}
	return l
}

func (s *Store) read() Link {
	data, before, err := statefile.ReadPrivate(s.path, maxFile)
	if before != 0 {
		s.setExposed(before)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Link{State: NotLinked}
	}
	if err != nil {
		return Link{State: Corrupt, Detail: err.Error()}
	}
	text, err := textfile.Decode(data)
	var l Link
	if err == nil {
		l, err = parse(text)
	}
	if err != nil {
		return Link{State: Corrupt, Detail: "read " + s.path + ": " + err.Error()}
	}
	if l.BackendURL == "" {
		return s.adopt(l, data, text)
	}
	return l
}

// origin is a token and the backend that was in use when the token was first read. The token belongs to that backend.
type origin struct {
	token   Secret
	backend string
}

// adopt adds the backend in use to a file without one, which another program may have written. A later setting then
// does not send the token to another backend. The token is not used until the file is written.
func (s *Store) adopt(l Link, data, text []byte) Link {
	again := s.first.token == l.AuthToken
	if !again {
		s.first = origin{l.AuthToken, s.o.Backend()}
	}
	l.BackendURL = s.first.backend
	complete, err := withBackend(text, l.BackendURL)
	if err == nil {
		err = s.written(complete, statefile.Replace(s.path, data, complete))
	}
	if err != nil {
		if !again {
			s.o.Log.Warn("failed to add the backend to auth.json, so its token is not used", "err", err)
		}
		l.State, l.AuthToken, l.BackendURL = OtherBackend, "", ""
		l.Detail = "auth.json does not contain the backend that issued its token, and the backend could not be added: " +
			err.Error()
		return l
	}
	s.o.Log.Info("added the missing backend to auth.json", "backend", l.BackendURL)
	return l
}

// setExposed records that other users had access to the file.
func (s *Store) setExposed(mode fs.FileMode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exposed = mode
	s.o.Log.Warn("other users had access to auth.json; its mode is now 0600", "mode", mode)
}

func (s *Store) set(l Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = l
	s.notifyWatchers()
}

// Current returns the snapshot, regardless of the backend that issued the link.
func (s *Store) Current() Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current()
}

func (s *Store) current() Link {
	l := s.link
	if l.State != Linked {
		return l
	}
	l.Verified = s.verified[l.AuthToken]
	switch {
	case s.revoked[l.AuthToken]:
		l.State, l.Detail = Revoked, "the backend rejected the token"
	case l.ExpiresAt != nil && !s.o.Now().Before(*l.ExpiresAt):
		l.State, l.Detail = Expired, "the token expired at "+l.ExpiresAt.UTC().Format(time.RFC3339)
	case s.unsaved != "":
		l.Detail = "auth.json could not be written; the link is lost when the daemon exits unless a retry succeeds" +
			": " + s.unsaved
	case s.exposed != 0:
		l.Detail = fmt.Sprintf("other users had access to auth.json (mode %04o), which has been removed; if you share this "+
			"machine, log out and link again", s.exposed)
	}
	return l
}

// For returns the snapshot for calls to one backend, a URL or "embedded:<id>". A link issued by another backend has the
// state OtherBackend and no token.
func (s *Store) For(backendURL string) Link {
	l := s.Current()
	if l.AuthToken != "" && !sameBackend(l.BackendURL, backendURL) {
		l.State, l.AuthToken, l.Verified = OtherBackend, "", Verdict{}
		l.Detail = "the account is linked at " + backend.DisplayName(l.BackendURL)
	}
	return l
}

// Save makes l the current link and writes it. It keeps unknown fields of the file. If the file cannot be written, Save
// returns the reason, the link is used until the daemon exits, and Serve retries.
func (s *Store) Save(l Link) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	l.State, l.Detail, l.Verified = Linked, "", Verdict{}
	if l.Tier == "" {
		l.Tier = TierFree
	}
	s.mu.Lock()
	delete(s.revoked, l.AuthToken)
	s.exposed = 0
	s.mu.Unlock()
	s.set(l)
	return s.write(l)
}

// write writes the link to the file and records whether it succeeded. The caller holds s.writing.
func (s *Store) write(l Link) error {
	before, _ := statefile.Read(s.path, maxFile) // an unreadable file is replaced
	data, err := format(before, l)
	if err == nil {
		err = s.written(data, statefile.Write(s.path, data))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved = ""
	if err != nil {
		s.unsaved = err.Error()
		select {
		case s.failed <- struct{}{}:
		default:
		}
	}
	s.notifyWatchers()
	return err
}

// written passes data to Options.Wrote if err is nil, and returns err. Otherwise, the watch could miss a change back to
// the state that it last saw, such as a removal right after the first Save.
func (s *Store) written(data []byte, err error) error {
	if err == nil && s.o.Wrote != nil {
		s.o.Wrote(data)
	}
	return err
}

// Delete removes the link and auth.json. was reports whether either existed.
func (s *Store) Delete() (was bool, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if was, err = statefile.Remove(s.path); err != nil {
		return false, err
	}
	if s.o.Wrote != nil {
		s.o.Wrote(nil)
	}
	was = was || s.Current().AuthToken != ""
	s.mu.Lock()
	s.unsaved, s.exposed = "", 0
	s.mu.Unlock()
	s.set(Link{State: NotLinked})
	return was, nil
}

// maxRemembered bounds the number of tokens whose verdicts are remembered.
const maxRemembered = 64

func remember[V any](m map[Secret]V, token Secret, v V) {
	if len(m) >= maxRemembered {
		clear(m)
	}
	m[token] = v
}

// MarkRevoked records that the backend rejected a token with 401. The file is kept.
func (s *Store) MarkRevoked(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	remember(s.revoked, Secret(token), true)
	s.notifyWatchers()
}

// SetVerified stores v, the backend's verdict on a token.
func (s *Store) SetVerified(token string, v Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	remember(s.verified, Secret(token), v)
	s.notifyWatchers()
}

// Watch returns a channel that receives the snapshot immediately and after each change, until ctx ends. A slow receiver
// gets only the latest snapshot.
func (s *Store) Watch(ctx context.Context) <-chan Link {
	ch := make(chan Link, 1)
	s.mu.Lock()
	ch <- s.current()
	s.watchers[ch] = struct{}{}
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, ch)
	})
	return ch
}

// notifyWatchers sends the snapshot to every watcher, replacing a snapshot that was not read yet. The caller holds
// s.mu.
func (s *Store) notifyWatchers() {
	for ch := range s.watchers {
		select {
		case <-ch:
		default:
		}
		ch <- s.current()
	}
}
