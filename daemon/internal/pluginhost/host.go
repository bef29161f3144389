package pluginhost

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses/render/fonts"
	"github.com/service-dev/service/internal/outbound"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/programpath"
)

// Names of the shipped adapters.
const (
	Local = "backendlocal"
	HTTP  = "backendhttp"
	// LocalSim is the adapter of LocalSimTransport, which provides simulated glasses on this machine.
	LocalSim = "localsim"
	// BrowserSim is the transport adapter of the browser simulator, whose sessions a backend hosts. The embedded
	// backend's sessions need only the embedded backend's adapter.
	BrowserSim = "browsersim"
	// RealDevice is the adapter of RealDeviceTransport, which connects real glasses over Bluetooth LE.
	RealDevice = "realdevice"
)

// shipped lists the adapters that are installed with the service, in display order.
func shipped() []string {
	return []string{
		HTTP, Local, LocalSim, BrowserSim, RealDevice,
	}
}

// shippedFile returns the file of a shipped adapter. It is normally serviced, which acts as the adapter whose program
// name it is started with, so that the adapters share its code on disk and in memory. A file in the same folder with
// the adapter's own program name takes precedence if the manifest lists it. An unlisted one may be left from another
// version.
func shippedFile(dir, name string) string {
	suffix := ""
	if runtime.GOOS == "windows" {
		suffix = ".exe"
	}
	own := filepath.Join(dir, programpath.AdapterPrefix+name+suffix)
	if _, err := manifestChecksum(filepath.Join(dir, Manifest), filepath.Base(own)); err == nil {
		return own
	}
	return filepath.Join(dir, "serviced"+suffix)
}

// maxMessage is the maximum size of an adapter's reply, in bytes.
const maxMessage = 8 << 20

// Options configures a Host. Dir, Now, Elsewhere and the durations are optional.
type Options struct {
	// Dir is the directory of the adapters and their manifest; empty means this executable's directory.
	Dir string
	// ConfigDir is the state directory. The embedded backend stores its data in its subdirectory backend/. It also
	// contains the list of the adapters that the user added.
	ConfigDir string
	// SocketDir is the parent of the adapters' socket directories. This user owns it, and its path is at most 70 bytes
	// long.
	SocketDir string
	Log       *slog.Logger
	Now       func() time.Time
	// Outbound returns the settings for HTTPS requests. Explain adds to the failure of a call to url the caller's
	// setting that would help. Both are optional.
	Outbound func() outbound.Settings
	Explain  func(ctx context.Context, url string, p *problem.Error)
	// Elsewhere reports whether the next daemon would be started from a folder other than Dir.
	Elsewhere func() bool
	// ProbeEvery is the interval at which an adapter with a call in progress is probed; 2 s by default. ProbeWait is
	// the maximum time for its response; 3 s by default. Tests shorten both.
	ProbeEvery, ProbeWait time.Duration
	// RestAfter is how long an adapter must be unused before its process is stopped; a minute by default. Tests shorten
	// it.
	RestAfter time.Duration
}

// PluginStatus is the state of one adapter.
type PluginStatus struct {
	Name, Path, State, Version, LastError string
	PID, Restarts                         int
	Verified                              bool
	// Since, Crashed and Resume are the times of the last start, the last crash and the end of the backoff. Each is
	// zero if there is none.
	Since, Crashed, Resume time.Time
	// Added, SHA256 and the fields after it describe an adapter that the user added: when it was added, the hash of its
	// file in hexadecimal, its owner, and its display name.
	Added                time.Time
	SHA256, Owner, Title string
}

// Host runs the adapters. It is safe for concurrent use. Serve must be running, because it stops the processes.
type Host struct {
	opts        Options
	now         func() time.Time
	adapters    map[string]*adapter // the shipped adapters; never changes
	life        context.Context
	end         context.CancelFunc
	supervisors sync.WaitGroup
	contacts    contacts
	fontsMu     sync.Mutex
	fonts       []fonts.Added // fonts that the user added
	unavailable error         // returned by every call; nil for a host that runs adapters

	changing sync.Mutex // held while an adapter is added or removed; taken before addedMu
	addedMu  sync.RWMutex
	added    []*adapter // the adapters that the user added, in the order added
}

// Unavailable returns a host that runs no adapters. Every call that needs an adapter fails with err.
func Unavailable(err error) *Host {
	h := &Host{now: time.Now, unavailable: err, adapters: map[string]*adapter{}}
	h.life, h.end = context.WithCancel(context.Background())
	for _, name := range shipped() {
		h.adapters[name] = newAdapter(h, name)
	}
	for _, t := range shippedTransports() {
		h.adapters[t.Name].about = &t
	}
	return h
}

// New returns a host. The first call that needs an adapter starts it.
func New(o Options) (*Host, error) {
	if o.Dir == "" {
		dir, err := programpath.Dir()
		if err != nil {
			return nil, err
		}
		o.Dir = dir
	}
	o.ProbeEvery, o.ProbeWait = cmp.Or(o.ProbeEvery, probeEvery), cmp.Or(o.ProbeWait, probeWait)
	o.RestAfter = cmp.Or(o.RestAfter, restAfter)
	h := Unavailable(nil)
	h.opts = o
	if o.Now != nil {
		h.now = o.Now
	}
	h.loadAdded()
	return h, nil
}

// Serve waits until ctx ends. It then asks every adapter to stop, kills the adapters still running after 2 s, and waits
// for all of them.
func (h *Host) Serve(ctx context.Context) error {
	<-ctx.Done()
	h.end()
	h.supervisors.Wait()
	return nil
}

// Plugins lists the adapters with their states.
func (h *Host) Plugins() []PluginStatus {
	var list []PluginStatus
	for _, a := range h.all() {
		list = append(list, a.snapshot())
	}
	return list
}

// all returns the adapters in display order.
func (h *Host) all() []*adapter {
	var list []*adapter
	for _, name := range shipped() {
		list = append(list, h.adapters[name])
	}
	h.addedMu.RLock()
	defer h.addedMu.RUnlock()
	return append(list, h.added...)
}

// Check verifies the files of all adapters without starting them. It returns errors by adapter.
func (h *Host) Check() map[string]error {
	found, checked := map[string]error{}, map[string]error{} // by adapter, by file
	for _, a := range h.all() {
		file := a.file()
		err, known := checked[file]
		if !known {
			_, err = a.verify()
			checked[file] = err
		}
		if err != nil {
			found[a.name] = err
		}
	}
	return found
}

// Embedded returns the embedded backend's id ("embedded:<id>") and address. It starts the embedded backend unless the
// backend is running or was stopped because it was idle.
func (h *Host) Embedded(ctx context.Context) (id, baseURL string, err error) {
	if id, baseURL = h.RunningEmbedded(); id != "" {
		return id, baseURL, nil
	}
	inst, done, err := h.adapters[Local].get(ctx)
	if err != nil {
		return "", "", err
	}
	defer done()
	return inst.about.GetEmbeddedId(), inst.about.GetBaseUrl(), nil
}

// pick returns the adapter that serves a backend address.
func (h *Host) pick(t backend.Target) *adapter {
	if isEmbedded(t.BaseURL) {
		return h.adapters[Local]
	}
	return h.adapters[HTTP]
}

func isEmbedded(url string) bool {
	return url == "" || strings.HasPrefix(url, backend.EmbeddedURL)
}

// RunningEmbedded returns the embedded backend's id ("embedded:<id>") and address if the backend is running, and empty
// strings otherwise. It does not start the backend. A backend that was stopped because it was idle counts as running,
// because its address accepts connections.
func (h *Host) RunningEmbedded() (id, baseURL string) {
	a := h.adapters[Local]
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.described.GetEmbeddedId(), a.described.GetBaseUrl()
}
