// Package telemetry records events about the use of the service: an allow-listed few fields, always to a local log
// that the person can read, and never anything about code or people (spec 6). Uploading comes with a later version;
// Gate already tells whether it would be allowed. The package knows no backend and no account.
package telemetry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/consent"
)

// Events (spec 6.1; tool.called is the tool-call event of 6.2).
const (
	LoginInitiated = "account.login_initiated"
	LoginCompleted = "account.login_completed"
	Linked         = "account.linked"
	ToolCalled     = "tool.called"
)

// allowed lists the fields that each event may carry; anything else is dropped before it is written anywhere.
var allowed = map[string][]string{
	LoginInitiated: nil,
	LoginCompleted: {"outcome"},
	Linked:         nil,
	ToolCalled:     {"tool", "durationMs", "outcome", "client"},
}

// The local log: Dir/FileName, and one older generation beside it.
const (
	Dir      = "telemetry"
	FileName = "events.jsonl"
	maxLog   = 2 << 20 // bytes, then the file becomes the older generation
	maxValue = 100     // bytes of a field's value
)

// Event is one line of the local log.
type Event struct {
	ID        string            `json:"id"`
	At        string            `json:"at"`
	Name      string            `json:"name"`
	InstallID string            `json:"installId"`
	Fields    map[string]string `json:"fields,omitempty"`
}

// Consents reads the person's decision.
type Consents interface {
	Get() (consent.State, error)
}

// Recorder writes events. It is safe for concurrent use.
type Recorder struct {
	path    string
	install string
	consent Consents
	log     *slog.Logger
	now     func() time.Time
	mu      sync.Mutex
}

// New makes the recorder of one state directory. now may be nil.
func New(dir, installID string, c Consents, log *slog.Logger, now func() time.Time) *Recorder {
	if now == nil {
		now = time.Now
	}
	return &Recorder{path: filepath.Join(dir, Dir, FileName), install: installID, consent: c, log: log, now: now}
}

// Path is the local log.
func (r *Recorder) Path() string { return r.path }

// Record writes an event to the local log. A log that cannot be written is reported to the daemon's log and nowhere
// else: telemetry never disturbs the work.
func (r *Recorder) Record(_ context.Context, name string, fields map[string]string) {
	names, known := allowed[name]
	if !known {
		r.log.Error("an event is not on the list and was dropped", "event", name)
		return
	}
	e := Event{ID: newID(), At: r.now().UTC().Format("2006-01-02T15:04:05.000Z"), Name: name, InstallID: r.install, Fields: pick(fields, names)}
	line, err := json.Marshal(e)
	if err == nil {
		err = r.append(append(line, '\n'))
	}
	if err != nil {
		r.log.Warn("writing the telemetry log", "err", err)
	}
}

func pick(fields map[string]string, names []string) map[string]string {
	kept := make(map[string]string, len(names))
	for _, name := range names {
		if v, ok := fields[name]; ok {
			kept[name] = v[:min(len(v), maxValue)]
		}
	}
	return kept
}

func (r *Recorder) append(line []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(r.path), 0o700); err != nil {
		return err
	}
	if info, err := os.Lstat(r.path); err == nil {
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a file", r.path)
		}
		if info.Size() > maxLog {
			if err := os.Rename(r.path, r.path+".old"); err != nil {
				return err
			}
		}
	}
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(line)
	return err
}

func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Switches that can stop an upload, as Gate names them.
const (
	ByEnv     = "SERVICE_TELEMETRY"
	ByDNT     = "DO_NOT_TRACK"
	ByCI      = "CI"
	ByConsent = "consent"
	ByDefault = "default"
)

// Gate tells whether the caller's events may be uploaded, and which switch decided (design D28). The shell's own
// switches win over the stored decision; none of them is ever stored.
func (r *Recorder) Gate(who caller.Caller) (allowed bool, decidedBy string) {
	switch {
	case who.Env["SERVICE_TELEMETRY"] == "0":
		return false, ByEnv
	case on(who.Env["DO_NOT_TRACK"]):
		return false, ByDNT
	case on(who.Env["CI"]):
		return false, ByCI
	}
	state, err := r.consent.Get()
	switch {
	case err != nil || state == consent.Declined:
		return false, ByConsent
	case state == consent.Accepted:
		return true, ByConsent
	}
	return true, ByDefault
}

func on(value string) bool { return value != "" && value != "0" && value != "false" }
