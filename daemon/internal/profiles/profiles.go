// Package profiles stores what the assistants of apps in local sessions remember: one text per project and user of the
// app. It stores the texts in the file memory.json of the state directory, with a hash of the user's secret. Nothing
// sends the file anywhere; a scenario's result quotes a part of a profile that differs from what it expects, and a
// recording of a session with a script contains the profile of the wearer.
package profiles

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/glasses/assistantscript"
)

// Limits of a store.
const (
	// Max is the maximum number of profiles; the least recently used ones are forgotten.
	Max = 1000
	// Life is how long a profile is kept after its last use.
	Life    = 30 * 24 * time.Hour
	maxFile = 32 << 20
	// useStep is how much later than in the file a use must be for the file to be written for that alone.
	useStep = time.Hour
)

const (
	fileName = "memory.json"
	corrupt  = ".corrupt-" // behind the name of a file that was renamed, before its time
)

// Profile is what is known about a user. The times are zero if nothing is stored.
type Profile struct {
	Text                 string
	UpdatedAt, ExpiresAt time.Time
}

// entry is a profile in the file.
type entry struct {
	Project string `json:"project"`
	// User is the SHA-256 of the project and the user's secret. It needs no key, because the secret has 128 random bits.
	User      string    `json:"user"`
	Profile   string    `json:"profile"`
	UpdatedAt time.Time `json:"updatedAt"`
	UsedAt    time.Time `json:"usedAt"`

	saved time.Time // UsedAt in the file
}

type key struct{ project, user string }

// file is the content of memory.json.
type file struct {
	Profiles []*entry `json:"profiles"`
}

// Store holds profiles. It is safe for concurrent use.
type Store struct {
	path string // empty for a store in memory
	now  func() time.Time
	log  *slog.Logger

	saving sync.Mutex // held while the file is written; taken before mu

	mu       sync.Mutex
	isLoaded bool
	isDirty  bool
	entries  map[key]*entry
	open     map[*Conversation]bool
}

// New returns the store of a state directory. It reads the file on first use. It renames a file that is not what Save
// writes and then treats it as empty. While the file cannot be read, Load fails, profiles are empty, and changes have
// no effect.
func New(stateDir string, now func() time.Time, log *slog.Logger) *Store {
	return &Store{path: filepath.Join(stateDir, fileName), now: now, log: log, entries: map[key]*entry{},
		open: map[*Conversation]bool{}}
}

// NewPrivate returns a store in memory with one profile, which all projects and users share.
func NewPrivate(profile string, now func() time.Time) *Store {
	s := &Store{now: now, isLoaded: true, entries: map[key]*entry{}, open: map[*Conversation]bool{}}
	s.put(key{}, s.newEntry(key{}, profile))
	return s
}

// Load reads the file on first use. It returns an error of the file system if the file cannot be read; the next call
// tries again.
func (s *Store) Load() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load()
}

// Get returns the profile of a user of a project.
func (s *Store) Get(project, user string) Profile {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(s.key(project, user))
	if e == nil {
		return Profile{}
	}
	return Profile{Text: e.Profile, UpdatedAt: e.UpdatedAt, ExpiresAt: e.UsedAt.Add(Life)}
}

// Put replaces a profile, first in the file. text must satisfy assistantscript.CheckProfile. An empty text removes the
// profile. Put returns an error of the file system on failure, and then changes nothing.
func (s *Store) Put(project, user, text string) error {
	return s.replace(s.key(project, user), text, false)
}

// Erase removes a profile, as Put does. Conversations that have begun before no longer change it.
func (s *Store) Erase(project, user string) error {
	return s.replace(s.key(project, user), "", true)
}

// replace is Put for the entry at k. With fence, conversations that have begun before no longer change the entry.
func (s *Store) replace(k key, text string, fence bool) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return err
	}
	e := s.newEntry(k, text)
	f := s.content(s.with(k, e))
	s.isDirty = false
	s.mu.Unlock() // others read and change the entries while the file is written
	err := s.write(f)
	s.mu.Lock()
	if err != nil {
		s.isDirty = true // content has marked uses as saved
		return err
	}
	isDirty := s.isDirty
	s.put(k, e)
	s.isDirty = isDirty
	for c := range s.open {
		if fence && c.key == k {
			delete(s.open, c)
		}
	}
	return nil
}

// Conversation is a use of a profile that may change it at its end.
type Conversation struct {
	// Profile is the profile at the beginning.
	Profile string

	store *Store
	key   key
}

// Begin begins a conversation of a user. The caller must call End.
func (s *Store) Begin(project, user string) *Conversation {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Conversation{store: s, key: s.key(project, user)}
	if e := s.find(c.key); e != nil {
		c.Profile, e.UsedAt = e.Profile, s.now().UTC()
		s.isDirty = s.isDirty || e.UsedAt.Sub(e.saved) >= useStep
	}
	s.open[c] = true
	return c
}

// End merges lines into the profile, unless it was erased during the conversation. Empty lines are ignored. Only the
// first call has an effect, and none if c is nil.
func (c *Conversation) End(lines ...string) {
	if c == nil {
		return
	}
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open[c] {
		return
	}
	delete(s.open, c)
	before := ""
	if e := s.find(c.key); e != nil {
		before = e.Profile
	}
	if after := assistantscript.Merge(before, lines); after != before {
		s.put(c.key, s.newEntry(c.key, after))
	}
}

// key returns the key of a user's profile.
func (s *Store) key(project, user string) key {
	if s.path == "" {
		return key{}
	}
	sum := sha256.Sum256([]byte(project + "\x00" + user))
	return key{project, hex.EncodeToString(sum[:])}
}

// find returns the entry at k unless it has expired, or nil. The caller holds mu.
func (s *Store) find(k key) *entry {
	if s.load() != nil {
		return nil
	}
	e := s.entries[k]
	if e != nil && s.isExpired(e) {
		delete(s.entries, k)
		s.isDirty = true
		return nil
	}
	return e
}

func (s *Store) isExpired(e *entry) bool { return s.now().Sub(e.UsedAt) > Life }

// newEntry returns the entry at k for a text, or nil if text is empty.
func (s *Store) newEntry(k key, text string) *entry {
	if text == "" {
		return nil
	}
	now := s.now().UTC()
	return &entry{Project: k.project, User: k.user, Profile: text, UpdatedAt: now, UsedAt: now}
}

// put replaces the entry at k by e, or removes it if e is nil. The caller holds mu.
func (s *Store) put(k key, e *entry) {
	if s.load() == nil {
		s.entries, s.isDirty = s.with(k, e), true
	}
}

// with returns the entries after put. The caller holds mu.
func (s *Store) with(k key, e *entry) map[key]*entry {
	entries := maps.Clone(s.entries)
	delete(entries, k)
	if e == nil {
		return entries
	}
	if len(entries) == Max {
		oldest := slices.MinFunc(slices.Collect(maps.Values(entries)), func(a, b *entry) int {
			return a.UsedAt.Compare(b.UsedAt)
		})
		delete(entries, key{oldest.Project, oldest.User})
	}
	entries[k] = e
	return entries
}

// list returns entries in the order of the file.
func list(entries map[key]*entry) []*entry {
	list := slices.Collect(maps.Values(entries))
	slices.SortFunc(list, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User))
	})
	return list
}

// load is Load. The caller holds mu.
func (s *Store) load() error {
	if s.isLoaded {
		return nil
	}
	data, err := statefile.Read(s.path, maxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, statefile.ErrTooLarge) {
		return fmt.Errorf("read the profiles of conversation memory: %w", err)
	}
	s.isLoaded = true
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var f file
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		s.log.Warn("failed to parse the profiles of conversation memory", "err", err)
		if err := os.Rename(s.path, s.path+corrupt+s.now().UTC().Format("20060102T150405Z")); err != nil {
			s.log.Warn("failed to rename an unusable file", "path", s.path, "err", err)
		}
		return nil
	}
	s.fill(f.Profiles)
	return nil
}

// fill adds the valid profiles of a file, most recently used first. The caller holds mu.
func (s *Store) fill(list []*entry) {
	now := s.now().UTC()
	list = slices.DeleteFunc(list, func(e *entry) bool { return e == nil })
	slices.SortStableFunc(list, func(a, b *entry) int { return b.UsedAt.Compare(a.UsedAt) })
	for _, e := range list {
		if e.Profile == "" || assistantscript.CheckProfile(e.Profile) != nil || s.isExpired(e) ||
			len(s.entries) >= Max {
			s.isDirty = true
			continue
		}
		if e.UsedAt.After(now) { // the clock was wrong; the profile would expire too late
			e.UsedAt, s.isDirty = now, true
		}
		e.saved = e.UsedAt
		s.entries[key{e.Project, e.User}] = e
	}
}

// Sweep deletes the profiles that have expired, and files that New's store renamed a Life or more after they were
// written. It returns an error of the file system on failure.
func (s *Store) Sweep() error {
	dir := filepath.Dir(s.path)
	old, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("find unusable files of conversation memory: %w", err)
	}
	for _, e := range old {
		info, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), fileName+corrupt) || s.now().Sub(info.ModTime()) <= Life {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("delete an unusable file of conversation memory: %w", err)
		}
	}
	if err := s.Load(); err != nil {
		return err
	}
	return s.Save()
}

// Save writes the file if a profile has changed or expired. It returns an error of the file system on failure; the next
// call tries again.
func (s *Store) Save() error {
	if s.path == "" {
		return nil
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	f, isDirty := s.changed()
	if !isDirty {
		return nil
	}
	err := s.write(f)
	if err != nil {
		s.mu.Lock()
		s.isDirty = true
		s.mu.Unlock()
	}
	return err
}

// write writes the file of a store that has one. The caller holds saving.
func (s *Store) write(f file) error {
	if s.path == "" {
		return nil
	}
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(f)
	if err == nil {
		err = statefile.Write(s.path, data.Bytes())
	}
	if err != nil {
		return fmt.Errorf("save the profiles of conversation memory: %w", err)
	}
	return nil
}

// changed removes the expired profiles, and returns a copy of the others if the file must be written.
func (s *Store) changed() (f file, isDirty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.entries {
		s.find(k)
	}
	if !s.isDirty {
		return f, false
	}
	s.isDirty = false
	return s.content(s.entries), true
}

// content returns the file with copies of the entries that have not expired. The caller holds mu.
func (s *Store) content(entries map[key]*entry) file {
	f := file{Profiles: []*entry{}}
	for _, e := range list(entries) {
		if s.isExpired(e) {
			continue
		}
		e.saved = e.UsedAt
		written := *e
		f.Profiles = append(f.Profiles, &written)
	}
	return f
}
