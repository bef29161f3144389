package session

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/ratelog"
	"github.com/service-dev/service/daemon/internal/statefile"
)

// latestName is the file that remembers which session each directory used last.
const latestName = "latest.json"

// latest remembers which session each directory used last; only a change is written.
type latest struct {
	path string
	log  *ratelog.Logger

	mu   sync.Mutex
	read bool
	of   map[string]lastUse
}

type lastUse struct {
	Session string `json:"session"`
	UsedAt  int64  `json:"usedAt"` // Unix ms of its first use there
}

// load reads the file once; one that does not parse is begun anew. mu is held.
func (l *latest) load() {
	if l.read {
		return
	}
	l.read, l.of = true, map[string]lastUse{}
	data, err := statefile.Read(l.path, maxProjectsFile)
	if err == nil && json.Unmarshal(data, &l.of) != nil || l.of == nil {
		l.of = map[string]lastUse{}
	}
}

func (l *latest) set(dir, id string) {
	dir = cleanDir(dir)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.load()
	if l.of[dir].Session == id {
		return
	}
	l.of[dir] = lastUse{id, time.Now().UnixMilli()}
	for len(l.of) > maxDirectories {
		oldest, first := "", true
		for d, use := range l.of {
			if first || use.UsedAt < l.of[oldest].UsedAt {
				oldest, first = d, false
			}
		}
		delete(l.of, oldest)
	}
	data, err := json.MarshalIndent(l.of, "", " ")
	if err == nil {
		if err = os.MkdirAll(filepath.Dir(l.path), 0o700); err == nil {
			err = statefile.Write(l.path, append(data, '\n'))
		}
	}
	if err != nil {
		l.log.Warn("remembering the session of a directory", "err", err)
	}
}

func (l *latest) get(dir string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.load()
	use, ok := l.of[cleanDir(dir)]
	return use.Session, ok
}

// closed forgets a session; the file follows with the next change.
func (l *latest) closed(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.load()
	for dir, use := range l.of {
		if use.Session == id {
			delete(l.of, dir)
		}
	}
}

// used remembers that the caller's directory uses a session, which is known to be there.
func (m *Manager) used(ctx context.Context, id string) {
	if who := caller.From(ctx); who.Cwd != "" {
		m.latest.set(who.Cwd, id)
	}
}

// Latest is the session that the caller's directory used last; ok is false when it used none, or that one was closed
// here. A browser session may have been closed elsewhere meanwhile.
func (m *Manager) Latest(_ context.Context, who caller.Caller) (id string, ok bool) {
	id, ok = m.latest.get(who.Cwd)
	if ok && IsLocal(id) && m.local.open(id) == nil {
		return "", false
	}
	return id, ok
}

// cleanDir is a directory's name as its client gave it: links in it were resolved there.
func cleanDir(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Clean(dir)
}
