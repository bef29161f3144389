// Package profiles stores what the assistants of apps in local sessions remember: one text per project and user of the
// app. It stores the texts in the file memory.json of the state directory, with a hash of the user's secret. These data
// never leave the computer.
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
	"os"
	"path/filepath"
	"slices"
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
)

const fileName = "memory.json"

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

// New returns the store of a state directory. It reads the file on first use. It renames an unusable file and then
// treats it as empty.
func New(stateDir string, now func() time.Time, log *slog.Logger) *Store {
	return &Store{path: filepath.Join(stateDir, fileName), now: now, log: log, entries: map[key]*entry{},
		open: map[*Conversation]bool{}}
}

// NewPrivate returns a store in memory with one profile, which all projects and users share.
func NewPrivate(profile string, now func() time.Time) *Store {
	s := &Store{now: now, isLoaded: true, entries: map[key]*entry{}, open: map[*Conversation]bool{}}
	s.Put("", "", profile)
	return s
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

// Put replaces a profile. text must satisfy assistantscript.CheckProfile. An empty text removes the profile.
func (s *Store) Put(project, user, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(s.key(project, user), text)
}

// Erase removes a profile. Conversations that have begun before no longer change it.
func (s *Store) Erase(project, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.key(project, user)
	for c := range s.open {
		if c.key == k {
			delete(s.open, c)
		}
	}
	s.put(k, "")
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
		c.Profile, e.UsedAt, s.isDirty = e.Profile, s.now().UTC(), true
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
		s.put(c.key, after)
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
	s.load()
	e := s.entries[k]
	if e != nil && s.isExpired(e) {
		delete(s.entries, k)
		s.isDirty = true
		return nil
	}
	return e
}

func (s *Store) isExpired(e *entry) bool { return s.now().Sub(e.UsedAt) > Life }

// put replaces the entry at k. The caller holds mu.
func (s *Store) put(k key, text string) {
	s.load()
	s.isDirty = true
	if text == "" {
		delete(s.entries, k)
		return
	}
	now := s.now().UTC()
	s.entries[k] = &entry{Project: k.project, User: k.user, Profile: text, UpdatedAt: now, UsedAt: now}
	if len(s.entries) > Max {
		oldest := slices.MinFunc(s.list(), func(a, b *entry) int { return a.UsedAt.Compare(b.UsedAt) })
		delete(s.entries, key{oldest.Project, oldest.User})
	}
}

// list returns the entries in the order of the file. The caller holds mu.
func (s *Store) list() []*entry {
	list := make([]*entry, 0, len(s.entries))
	for _, e := range s.entries {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User))
	})
	return list
}

// load reads the file on first use. The caller holds mu.
func (s *Store) load() {
	if s.isLoaded {
		return
	}
	s.isLoaded = true
	data, err := statefile.Read(s.path, maxFile)
	var f file
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("failed to read the profiles of conversation memory", "err", err)
		aside := s.path + ".corrupt-" + s.now().UTC().Format("20060102T150405Z")
		if err := os.Rename(s.path, aside); err != nil {
			s.log.Warn("failed to rename an unusable file", "path", s.path, "err", err)
		}
		return
	}
	for _, e := range f.Profiles {
		if e == nil || e.Profile == "" || assistantscript.CheckProfile(e.Profile) != nil || s.isExpired(e) {
			s.isDirty = true
			continue
		}
		if len(s.entries) < Max {
			s.entries[key{e.Project, e.User}] = e
		}
	}
}

// Save writes the file if a profile has changed. It returns an error of the file system on failure; the next call tries
// again.
func (s *Store) Save() error {
	if s.path == "" {
		return nil
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	if !s.isDirty {
		s.mu.Unlock()
		return nil
	}
	s.isDirty = false
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(file{Profiles: s.list()})
	s.mu.Unlock()
	if err == nil {
		err = statefile.Write(s.path, data.Bytes())
	}
	if err != nil {
		s.mu.Lock()
		s.isDirty = true
		s.mu.Unlock()
		return fmt.Errorf("save the profiles of conversation memory: %w", err)
	}
	return nil
}
