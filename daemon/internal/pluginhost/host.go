package pluginhost

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
)

// Names of the adapters that ship; the binary of one is service-plugin-<name>.
const (
	Local = "backendlocal"
	HTTP  = "backendhttp"
	// LocalSim is a transport adapter: simulated glasses on this machine.
	LocalSim = "localsim"
)

// names lists the adapters in the order in which people are shown them.
func names() []string { return []string{HTTP, Local, LocalSim} }

// isTransport tells a transport adapter from one of a backend.
func isTransport(name string) bool { return name == LocalSim }

// maxMessage bounds an answer of an adapter in bytes.
const maxMessage = 8 << 20

// Options say where things are. All are required but Dir and Now.
type Options struct {
	// Dir holds the adapters and their manifest; empty means the directory of this very executable.
	Dir string
	// ConfigDir is told to the embedded backend, which keeps its data in backend/ under it.
	ConfigDir string
	// SocketDir becomes the parent of the adapters' socket directories: of this user alone, at most 70 bytes long.
	SocketDir string
	Log       *slog.Logger
	Now       func() time.Time
	// ProbeEvery is how often an adapter with a call under way is asked whether it lives, 2 s without it, and ProbeWait
	// how long it may take to answer, 3 s. Tests shorten them.
	ProbeEvery, ProbeWait time.Duration
}

// PluginStatus is one adapter as the daemon sees it.
type PluginStatus struct {
	Name, Path, State, Version, LastError string
	PID, Restarts                         int
	Verified                              bool
	// Since is when it last began to run, Crashed when it last crashed, Resume when the pause of Backoff ends. Zero: never.
	Since, Crashed, Resume time.Time
}

// Host runs the adapters. It may be called from many goroutines; Serve must be running for its processes to end.
type Host struct {
	opts     Options
	now      func() time.Time
	adapters map[string]*adapter
	life     context.Context
	end      context.CancelFunc
	owner    sync.WaitGroup
	contacts contacts
}

// New prepares a host. No adapter is started before a call needs it.
func New(o Options) (*Host, error) {
	if o.Dir == "" {
		exe, err := os.Executable()
		if err != nil {
			return nil, err
		}
		o.Dir = filepath.Dir(exe)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ProbeEvery <= 0 {
		o.ProbeEvery = probeEvery
	}
	if o.ProbeWait <= 0 {
		o.ProbeWait = probeWait
	}
	h := &Host{opts: o, now: o.Now, adapters: map[string]*adapter{}}
	h.life, h.end = context.WithCancel(context.Background())
	for _, name := range names() {
		file := "service-plugin-" + name
		if runtime.GOOS == "windows" {
			file += ".exe"
		}
		h.adapters[name] = newAdapter(h, name, filepath.Join(o.Dir, file))
	}
	return h, nil
}

// Serve waits until ctx ends, then stops every adapter and waits for them: a graceful 2 s, then by force.
func (h *Host) Serve(ctx context.Context) error {
	<-ctx.Done()
	h.end()
	h.owner.Wait()
	return nil
}

// Plugins lists the adapters with their state.
func (h *Host) Plugins() []PluginStatus {
	list := make([]PluginStatus, 0, len(h.adapters))
	for _, name := range names() {
		list = append(list, h.adapters[name].snapshot())
	}
	return list
}

// Check verifies the files of every adapter without starting one; the map holds what is wrong, by adapter.
func (h *Host) Check() map[string]error {
	found := map[string]error{}
	for name, a := range h.adapters {
		if err := verify(h.opts.Dir, a.path); err != nil {
			found[name] = err
		}
	}
	return found
}

// Embedded starts the embedded backend when it does not run, and tells its id ("embedded:<id>") and address.
func (h *Host) Embedded(ctx context.Context) (id, baseURL string, err error) {
	inst, err := h.adapters[Local].get(ctx)
	if err != nil {
		return "", "", err
	}
	return inst.about.GetEmbeddedId(), inst.about.GetBaseUrl(), nil
}

// pick chooses the adapter of a backend address.
func (h *Host) pick(t backend.Target) *adapter {
	if embedded(t.BaseURL) {
		return h.adapters[Local]
	}
	return h.adapters[HTTP]
}

func embedded(url string) bool {
	return url == "" || strings.HasPrefix(url, backend.EmbeddedURL)
}

// EmbeddedURL is the embedded backend's address if it runs, else empty. It starts nothing.
func (h *Host) EmbeddedURL() string {
	if inst := h.adapters[Local].live(); inst != nil {
		return inst.about.GetBaseUrl()
	}
	return ""
}

// EmbeddedID is "embedded:<id>" of the embedded backend if it runs, else empty. It starts nothing.
func (h *Host) EmbeddedID() string {
	if inst := h.adapters[Local].live(); inst != nil {
		return inst.about.GetEmbeddedId()
	}
	return ""
}
