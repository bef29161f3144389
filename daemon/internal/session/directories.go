package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/ratelog"
	"github.com/service-dev/service/daemon/internal/statefile"
)

// Limits of a file that stores data about directories: the number of entries, and the size in bytes.
const (
	maxDirectories     = 500
	maxDirectoriesFile = 4 << 20
)

// loadDirectories reads a file that maps directories to entries. A file that is not JSON counts as empty, because the
// loss does not matter to users.
func loadDirectories[T any](path string) (map[string]T, error) {
	entries := map[string]T{}
	data, err := statefile.Read(path, maxDirectoriesFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return entries, err
	}
	if json.Unmarshal(data, &entries) != nil || entries == nil {
		entries = map[string]T{}
	}
	return entries, nil
}

// saveDirectories writes the entries. Above the limit it drops the least recently used ones.
func saveDirectories[T interface{ lastUse() int64 }](path string, entries map[string]T) error {
	for len(entries) > maxDirectories {
		delete(entries, slices.MinFunc(slices.Collect(maps.Keys(entries)), func(a, b string) int {
			return cmp.Compare(entries[a].lastUse(), entries[b].lastUse())
		}))
	}
	data, err := json.MarshalIndent(entries, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return statefile.Write(path, append(data, '\n'))
}

// cleanDir normalizes a directory's path from a client, which has resolved symbolic links.
func cleanDir(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Clean(dir)
}

// latestName is the name of the file that records the sessions of each directory.
const latestName = "latest.json"

// maxEarlier is the number of sessions recorded for a directory in addition to the most recently
// used one.
const maxEarlier = 15

// latestSessions records the sessions that each directory used. When the most recently used session is closed, the
// previous one replaces it.
type latestSessions struct {
	path string
	log  *ratelog.Logger

	mu      sync.Mutex
	entries map[string]latestSession // nil until the file is read
}

type latestSession struct {
	Session string `json:"session"`
	UsedAt  int64  `json:"usedAt"` // Unix ms of its first use in the directory
	// Earlier are the sessions that the directory used before, most recently used first.
	Earlier []string `json:"earlier,omitempty"`
}

func (s latestSession) all() []string { return append([]string{s.Session}, s.Earlier...) }

func (s latestSession) lastUse() int64 { return s.UsedAt }

// loaded returns the entries, reading the file on first use. The caller holds mu.
func (l *latestSessions) loaded() map[string]latestSession {
	if l.entries == nil {
		l.entries, _ = loadDirectories[latestSession](l.path) // without the file, callers must specify a session
	}
	return l.entries
}

// set records a directory's session, and writes the file if the session changed.
func (l *latestSessions) set(dir, id string) {
	dir = cleanDir(dir)
	l.mu.Lock()
	defer l.mu.Unlock()
	entries := l.loaded()
	before, known := entries[dir]
	if before.Session == id {
		return
	}
	var earlier []string
	if known {
		earlier = slices.DeleteFunc(before.all(), func(other string) bool { return other == id })
	}
	entries[dir] = latestSession{id, time.Now().UnixMilli(), earlier[:min(len(earlier), maxEarlier)]}
	l.save()
}

// save writes the file. The caller holds mu.
func (l *latestSessions) save() {
	if err := saveDirectories(l.path, l.entries); err != nil {
		l.log.Warn("failed to save the sessions of the directories", "err", err)
	}
}

// get returns the sessions that a directory used, most recently used first.
func (l *latestSessions) get(dir string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if latest, ok := l.loaded()[cleanDir(dir)]; ok {
		return latest.all()
	}
	return nil
}

// forget removes a closed session from every directory.
func (l *latestSessions) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := false
	for dir, s := range l.loaded() {
		left := s.all()
		i := slices.Index(left, id)
		if i < 0 {
			continue
		}
		changed = true
		if left = slices.Delete(left, i, i+1); len(left) == 0 {
			delete(l.entries, dir)
			continue
		}
		l.entries[dir] = latestSession{left[0], s.UsedAt, left[1:]}
	}
	if changed {
		l.save()
	}
}

// used records that the caller's directory uses an existing session.
func (m *Manager) used(ctx context.Context, id string) {
	if dir := caller.From(ctx).Workspace(); dir != "" {
		m.latest.set(dir, id)
	}
}

// recent returns the sessions that the caller's directory used, most recently used first, except those that this daemon
// closed. A browser session may have been closed elsewhere.
func (m *Manager) recent(who caller.Caller) []string {
	return slices.DeleteFunc(m.latest.get(who.Workspace()), func(id string) bool {
		return IsLocal(id) && m.local.find(id) == nil
	})
}

// Latest returns the open session that the caller's directory used most recently. ok is false if there is none.
func (m *Manager) Latest(_ context.Context, who caller.Caller) (id string, ok bool) {
	recent := m.recent(who)
	if len(recent) == 0 {
		return "", false
	}
	return recent[0], true
}

// Replaced is the outcome of ClosePrevious: either the ID of the closed session, or the reason why no session was
// closed.
type Replaced struct{ Closed, WhyNot string }

// ClosePrevious closes the session that a new one replaces, which is the most recently used session of the caller's
// directory with the same kind and project. It does not close a session that another program holds, because that
// session ends with that program.
func (m *Manager) ClosePrevious(ctx context.Context, target backend.Target, who caller.Caller, by Opened) Replaced {
	var others []string
	for _, id := range m.recent(who) {
		if id == by.SessionID {
			continue
		}
		if IsLocal(id) != IsLocal(by.SessionID) {
			others = append(others, id+" is of another kind")
			continue
		}
		s, err := m.Get(ctx, target, id)
		switch local := m.local.find(id); {
		case err != nil:
			others = append(others, fmt.Sprintf("%s was not found: %v", id, err))
		case s.State == "closed":
			m.latest.forget(id)
		case s.Project != by.Project:
			others = append(others, id+" belongs to "+s.Project)
		case local != nil && local.isHeld.Load():
			others = append(others, id+" ends with the `servicectl session run` that opened it")
		default:
			if _, err := m.Close(ctx, target, id); err != nil {
				return Replaced{WhyNot: fmt.Sprintf("%s could not be closed: %v", id, err)}
			}
			return Replaced{Closed: id}
		}
	}
	if len(others) == 0 {
		return Replaced{WhyNot: "this directory has used no other session that is open"}
	}
	return Replaced{WhyNot: "this directory has used no other session of this kind and project: " +
		strings.Join(others, "; ")}
}

// Hold ties a local session to the program that opened it: the session ends with that program.
func (m *Manager) Hold(id string) {
	if s := m.local.find(id); s != nil {
		s.isHeld.Store(true)
	}
}
