package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/ratelog"
	"github.com/service-dev/service/daemon/internal/statefile"
)

// Limits for a file that stores data about directories: the number of entries, and the bytes to read.
const (
	maxDirectories     = 500
	maxDirectoriesFile = 4 << 20
)

// loadDirectories reads a file that maps directories to entries. A file that is not JSON counts as empty, because it
// contains nothing that a user would miss.
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

// cleanDir returns the name of a directory as sent by its client, which has resolved symbolic links.
func cleanDir(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Clean(dir)
}

// latestName is the name of the file that records which session each directory used last.
const latestName = "latest.json"

// latestSessions records which session each directory used last.
type latestSessions struct {
	path string
	log  *ratelog.Logger

	mu      sync.Mutex
	entries map[string]latestSession // nil until the file is read
}

type latestSession struct {
	Session string `json:"session"`
	UsedAt  int64  `json:"usedAt"` // Unix ms of its first use in the directory
}

func (s latestSession) lastUse() int64 { return s.UsedAt }

// loaded returns the entries. It reads the file once. The caller holds mu.
func (l *latestSessions) loaded() map[string]latestSession {
	if l.entries == nil {
		l.entries, _ = loadDirectories[latestSession](l.path) // if the file is missing, callers must name a session
	}
	return l.entries
}

// set records a directory's session, and writes the file if the session changed.
func (l *latestSessions) set(dir, id string) {
	dir = cleanDir(dir)
	l.mu.Lock()
	defer l.mu.Unlock()
	entries := l.loaded()
	if entries[dir].Session == id {
		return
	}
	entries[dir] = latestSession{id, time.Now().UnixMilli()}
	if err := saveDirectories(l.path, entries); err != nil {
		l.log.Warn("failed to save the session of a directory", "err", err)
	}
}

func (l *latestSessions) get(dir string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	latest, ok := l.loaded()[cleanDir(dir)]
	return latest.Session, ok
}

// forget removes a closed session. The file is written with the next change.
func (l *latestSessions) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.loaded(), func(_ string, s latestSession) bool { return s.Session == id })
}

// used records that the caller's directory uses a session, which must exist.
func (m *Manager) used(ctx context.Context, id string) {
	if who := caller.From(ctx); who.Cwd != "" {
		m.latest.set(who.Cwd, id)
	}
}

// Latest returns the session that the caller's directory used last; ok is false if it used none, or if that session
// was closed here. A browser session may have been closed elsewhere in the meantime.
func (m *Manager) Latest(_ context.Context, who caller.Caller) (id string, ok bool) {
	id, ok = m.latest.get(who.Cwd)
	if ok && IsLocal(id) && m.local.find(id) == nil {
		return "", false
	}
	return id, ok
}
