package session

import (
	"cmp"
	"encoding/json"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/ratelog"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
)

// meta is the content of session.json. It contains the hash of a secret, but no secret.
type meta struct {
	SessionID    string    `json:"sessionId"`
	Project      string    `json:"project"`
	Dir          string    `json:"dir"`
	Clock        string    `json:"clock"`
	Transport    string    `json:"transport,omitempty"`   // empty for localSim
	Pace         string    `json:"pace,omitempty"`        // empty for PaceNone
	GlassesName  string    `json:"glassesName,omitempty"` // name of the real glasses, requested or connected first
	Via          string    `json:"via,omitempty"`         // carrier of real glasses; empty for ViaAuto
	FixturesDir  string    `json:"fixturesDir,omitempty"`
	SecretHash   string    `json:"secretHash"`
	CreatedAt    time.Time `json:"createdAt"`
	LastActiveAt time.Time `json:"lastActiveAt"`
	// Attached is how many times glasses were started. The first pair is new; later pairs continue from the snapshot.
	Attached int `json:"attached"`
	// NowMs is the virtual time. Seq is the last row that Snapshot includes.
	NowMs    int64            `json:"nowMs"`
	Seq      int64            `json:"seq"`
	Snapshot glasses.Snapshot `json:"snapshot"`
	// Standing is the state set by apps that the next pair of glasses receives.
	Standing glasses.Standing `json:"standing"`
	// OwnMemory is whether the session has a profile of its own, which a restart of the daemon empties.
	OwnMemory bool `json:"ownMemory,omitempty"`
}

// transportName returns the name of the session's transport.
func (m meta) transportName() string { return cmp.Or(m.Transport, localSim) }

// stateFile is a local session's session.json in memory and on disk.
type stateFile struct {
	path  string
	id    string
	clock func() time.Time
	log   *ratelog.Logger

	saving sync.Mutex // held while the file is written; taken before mu

	mu      sync.Mutex
	meta    meta
	isDirty bool // the file differs from meta
}

// read returns a copy. The caller must not change the maps and slices of its snapshot.
func (f *stateFile) read() meta {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.meta
}

// update changes the state in memory. save writes it.
func (f *stateFile) update(change func(*meta)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.meta)
	f.isDirty = true
}

// isVirtual reports whether the session's time is virtual. This never changes.
func (f *stateFile) isVirtual() bool { return f.meta.Clock == backend.ClockVirtual }

// nowMs returns the time on the session's clock.
func (f *stateFile) nowMs() int64 {
	if !f.isVirtual() {
		return f.clock().UnixMilli()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.meta.NowMs
}

// advanceTo advances virtual time to at, the time of the glasses.
func (f *stateFile) advanceTo(at int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isVirtual() && at > f.meta.NowMs {
		f.meta.NowMs, f.isDirty = at, true
	}
}

// setSeq sets the last row that the snapshot includes.
func (f *stateFile) setSeq(seq int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.meta.Seq = seq
}

// restore applies a row of an earlier process, which may have been killed before it saved the state.
func (f *stateFile) restore(row glasses.Event, answered *broker.Command) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.meta.NowMs = max(f.meta.NowMs, row.At)
	if row.Seq > f.meta.Seq {
		f.isDirty = true
		f.meta.applyEvent(row, answered)
	}
}

// apply applies a new row. If the row is a result, answered is the command that it answers.
func (f *stateFile) apply(row glasses.Event, answered *broker.Command) {
	f.update(func(m *meta) {
		m.LastActiveAt, m.Seq = f.clock(), row.Seq
		m.applyEvent(row, answered)
	})
}

// applyAnswer applies the state that the glasses reported in response to a query.
func (f *stateFile) applyAnswer(res glasses.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if res.State != nil {
		f.meta.Snapshot.State, f.isDirty = *res.State, true
	}
	if res.View != nil {
		f.meta.Snapshot.View = *res.View
	}
}

// save writes the file if the state has changed.
func (f *stateFile) save() error {
	f.saving.Lock()
	defer f.saving.Unlock()
	f.mu.Lock()
	if !f.isDirty {
		f.mu.Unlock()
		return nil
	}
	f.isDirty = false
	data, err := json.MarshalIndent(f.meta, "", " ")
	f.mu.Unlock()
	if err == nil {
		err = statefile.Write(f.path, append(data, '\n'))
	}
	if err != nil {
		f.log.Warn("failed to save session", "session", f.id, "err", err)
		f.update(func(*meta) {})
	}
	return err
}
