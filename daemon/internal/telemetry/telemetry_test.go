package telemetry

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/consent"
	"github.com/service-dev/service/daemon/internal/identity"
	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/proto/telemetry"
)

const ours = "https://backend.example"

// world is an install with a backend that records requests.
type world struct {
	*Recorder
	consent *consent.Store
	install *identity.Install
	dir     string
	backend string // the daemon's configured backend
	looked  func() // if set, called when the gate reads backend

	mu      sync.Mutex
	batches []telemetry.Batch
	targets []backend.Target
	purged  []string // the backends that were asked to erase events
	refuse  error
	refuses map[string]error // the error of each backend when asked to erase; takes precedence over refuse
	entered chan struct{}    // if set, an upload sends on it when it begins and then blocks
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), backend: ours}
	quiet := slog.New(slog.DiscardHandler)
	var err error
	if w.install, err = identity.Open(w.dir, time.Now(), quiet); err != nil {
		t.Fatal(err)
	}
	w.consent = consent.New(w.dir)
	w.Recorder = w.again()
	return w
}

// again returns the recorder of a restarted daemon.
func (w *world) again() *Recorder {
	return New(Options{
		Dir: w.dir, InstallID: w.install.ID(), Version: "1.2.3", Consents: w.consent, Memory: w.install,
		Backend: func(who caller.Caller) (config.Backend, error) {
			if w.looked != nil {
				w.looked()
			}
			return w.resolve(who)
		}, Uploader: w, Log: slog.New(slog.DiscardHandler), Jitter: func() float64 { return 0 },
	})
}

func (w *world) resolve(who caller.Caller) (config.Backend, error) {
	url := w.backend
	if theirs := who.Env["SERVICE_BACKEND_URL"]; theirs != "" {
		url = theirs
	}
	if url == config.EmbeddedURL {
		return config.Backend{URL: url, Kind: config.KindEmbedded}, nil
	}
	return config.Backend{URL: url, Kind: config.KindRemote}, nil
}

func (w *world) UploadTelemetry(ctx context.Context, t backend.Target, body []byte) (backendapi.TelemetryReceipt, error) {
	if w.entered != nil {
		close(w.entered)
		<-ctx.Done()
		return backendapi.TelemetryReceipt{}, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var b telemetry.Batch
	if err := json.Unmarshal(body, &b); err != nil {
		return backendapi.TelemetryReceipt{}, err
	}
	w.batches, w.targets = append(w.batches, b), append(w.targets, t)
	return backendapi.TelemetryReceipt{Accepted: int64(len(b.Events))}, w.refuse
}

func (w *world) PurgeTelemetry(_ context.Context, t backend.Target) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.purged = append(w.purged, t.BaseURL)
	if err := w.refuses[t.BaseURL]; err != nil {
		return 0, err
	}
	return 7, w.refuse
}

// told returns an install whose notice was shown.
func told(t testing.TB) *world {
	w := newWorld(t)
	if err := w.install.SetNoticeShownAt(identity.Agents, time.Now()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) events() (all []telemetry.Event) {
	for _, b := range w.batches {
		all = append(all, b.Events...)
	}
	return all
}

func logged(t *testing.T, w *world) []telemetry.Event {
	t.Helper()
	f, err := os.Open(filepath.Join(w.dir, Dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []telemetry.Event
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e telemetry.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("a line is not complete JSON: %v", err)
		}
		all = append(all, e)
	}
	return all
}

func shell(pairs ...string) caller.Caller {
	env := map[string]string{}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return caller.Caller{Env: env}
}

func as(t *testing.T, pairs ...string) context.Context {
	return caller.With(t.Context(), shell(pairs...))
}

// The log and the uploaded bodies contain the same events, with exactly the declared fields.
func TestOnlyListedFieldsAreWritten(t *testing.T) {
	w := told(t)
	w.Record(as(t), telemetry.ToolCalled, map[string]any{
		"tool": "whoAmI", "outcome": strings.Repeat("x", 500), "durationMs": int64(12), "client": "Claude Code\n",
		"clientVersion": "/home/ada/agent", "userCode": "ABCD-EFGH",
	})
	w.Record(as(t), "something.else", map[string]any{"tool": "whoAmI"})
	if _, err := w.send(t.Context()); err != nil {
		t.Fatal(err)
	}
	events := logged(t, w)
	if len(events) != 1 || len(w.events()) != 1 || events[0].ID != w.events()[0].ID {
		t.Fatalf("logged %v, uploaded %v; want the same single event", events, w.events())
	}
	for _, e := range []telemetry.Event{events[0], w.events()[0]} {
		if _, err := e.Record(); err != nil {
			t.Error(err)
		}
		if string(e.Fields["client"]) != `"Claude Code"` || string(e.Fields["durationMs"]) != "12" ||
			string(e.Fields["version"]) != `"1.2.3"` || e.Fields["os"] == nil {
			t.Errorf("fields: %s", e.Fields)
		}
		if e.Fields["clientVersion"] != nil || e.Fields["userCode"] != nil {
			t.Errorf("fields: %s", e.Fields)
		}
	}
	if target := w.targets[0]; target.Bearer != "" || target.InstallID != w.install.ID() || target.BaseURL != ours {
		t.Errorf("target: %+v", target)
	}
	for _, path := range []string{FileName, spoolDir, lockName, countersName} {
		info, err := os.Stat(filepath.Join(w.dir, Dir, path))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v, error %v; want no access for other users", path, info.Mode(), err)
		}
	}
}

func TestWordsNameProgramsOnly(t *testing.T) {
	for in, want := range map[string]string{
		"claude-code": "claude-code", "Visual Studio Code\n": "Visual Studio Code", "1.2.3+b": "1.2.3+b",
		"my_agent": "my_agent",
		"Zed ✨":    "", "/home/ada/x": "", `C:\Users\ada`: "", "ada@example.org": "", "ada%40example.org": "", "Ada's agent": "",
		"~/x":         "",
		"@scope/name": "", "http://x": "", "\x00\n": "", "": "", strings.Repeat("y", 80): strings.Repeat("y", 64),
	} {
		if got := clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// The switches, strongest first. Events from a shell that sets a switch are not even spooled.
func TestGateNamesTheSwitchThatWon(t *testing.T) {
	for _, c := range []struct {
		env     string
		state   consent.State
		own     string
		noticed bool
		allowed bool
		by      string
		spooled int
	}{
		{"", consent.Unset, ours, true, true, ByDefault, 1},
		{"", consent.Unset, ours, false, false, ByNotice, 1},
		{"", consent.Accepted, ours, false, true, ByConsent, 1},
		{"", consent.Declined, ours, true, false, ByConsent, 0},
		{"", consent.Accepted, config.EmbeddedURL, true, false, ByEmbedded, 0},
		{"", consent.Declined, config.EmbeddedURL, true, false, ByConsent, 0},
		{"SERVICE_TELEMETRY=0", consent.Accepted, ours, true, false, ByEnv, 0},
		{"SERVICE_TELEMETRY=Off", consent.Accepted, ours, true, false, ByEnv, 0},
		{"SERVICE_TELEMETRY=no", consent.Accepted, ours, true, false, ByEnv, 0},
		{"SERVICE_TELEMETRY=FALSE", consent.Accepted, ours, true, false, ByEnv, 0},
		{"SERVICE_TELEMETRY=1", consent.Declined, ours, true, false, ByConsent, 0},
		{"DO_NOT_TRACK=1", consent.Accepted, ours, true, false, ByDNT, 0},
		{"DO_NOT_TRACK=0", consent.Accepted, ours, true, true, ByConsent, 1},
		{"CI=true", consent.Accepted, ours, true, false, ByCI, 0},
		{"SERVICE_TELEMETRY=0 DO_NOT_TRACK=1 CI=true", consent.Declined, ours, true, false, ByEnv, 0},
		{"SERVICE_BACKEND_URL=https://other.example", consent.Accepted, ours, true, false, ByBackend, 0},
		{"SERVICE_BACKEND_URL=" + ours, consent.Accepted, ours, true, true, ByConsent, 1},
		{"SERVICE_BACKEND_URL=https://other.example", consent.Accepted, config.EmbeddedURL, true, false, ByBackend, 0},
	} {
		w := newWorld(t)
		w.backend = c.own
		if c.noticed {
			w = told(t)
			w.backend = c.own
		}
		if err := w.consent.Set(c.state); err != nil {
			t.Fatal(err)
		}
		who := shell(strings.Fields(c.env)...)
		if allowed, by := w.Gate(who); allowed != c.allowed || by != c.by {
			t.Errorf("%v: got allowed %v, decided by %s", c, allowed, by)
		}
		w.Record(caller.With(t.Context(), who), telemetry.Linked, nil)
		if s := w.Status(who); s.Waiting != c.spooled || s.DecidedBy != c.by {
			t.Errorf("%v: got %d waiting events, decided by %s", c, s.Waiting, s.DecidedBy)
		}
		if len(logged(t, w)) != 1 {
			t.Errorf("%v: the event is not in the log", c)
		}
	}
}

// The first start is recorded once, together with the first call. The switches of that call's caller decide whether it
// is uploaded.
func TestFirstStartIsToldOnce(t *testing.T) {
	w := told(t)
	w.Started()
	w.Record(as(t, "SERVICE_TELEMETRY=0"), telemetry.Linked, nil)
	if s := w.Status(shell()); s.Waiting != 0 {
		t.Errorf("%d events wait, want none", s.Waiting)
	}
	second := w.again()
	second.Started()
	second.Record(as(t, "SERVICE_TELEMETRY=0"), telemetry.Linked, nil)
	if events := logged(t, w); len(events) != 3 || events[0].Name != telemetry.InstallStarted ||
		events[0].Fields["os"] == nil {
		t.Errorf("%v", events)
	}
	if err := w.install.SetLastVersion("1.2.2"); err != nil {
		t.Fatal(err)
	}
	updated := w.again()
	updated.Started()
	updated.Record(as(t), telemetry.Linked, nil)
	if _, err := updated.send(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := w.events(); len(e) != 2 || e[0].Name != telemetry.InstallUpdated ||
		string(e[0].Fields["previous"]) != `"1.2.2"` {
		t.Errorf("%v", e)
	}
}

// Neither another build of the same version nor an older version counts as an update.
func TestOnlyANewerVersionIsAnUpdate(t *testing.T) {
	for last, want := range map[string]int{
		"1.2.2": 1, "1.2.3-rc.1": 1, "1.2.3": 0, "1.2.3+deb12": 0, "1.3.0": 0, "dev": 1,
	} {
		w := told(t)
		if err := w.install.SetLastVersion(last); err != nil {
			t.Fatal(err)
		}
		w.Started()
		w.Record(as(t), telemetry.Linked, nil)
		updates := 0
		for _, e := range logged(t, w) {
			if e.Name == telemetry.InstallUpdated {
				updates++
			}
		}
		if updates != want || w.install.LastVersion() != "1.2.3" {
			t.Errorf("after version %s: %d updates recorded, last version %s", last, updates, w.install.LastVersion())
		}
	}
}

// A client name that contains a token or a code is neither spooled nor logged.
func TestRecord_ClientThatIsASecret(t *testing.T) {
	for _, secret := range []string{"svc_aGVsbG8td29ybGQtdGhpcy1pcy1hLXRlc3QtdG9rZW4wMDEyMzQ",
		"sdc_aGVsbG8td29ybGQtdGhpcy1pcy1hLXRlc3QtdG9rZW4wMDEyMzQ", "WDJB-MJHT",
		"f47ac10b58cc4372a5670e02b2c3d479f47ac10b58cc4372"} {
		for _, f := range []telemetry.Field{{Name: "client", Kind: telemetry.Name},
			{Name: "clientVersion", Kind: telemetry.Version}} {
			if data, ok := encode(f, secret); !ok || string(data) != `"other"` {
				t.Errorf("%s was encoded as %s, %v; want other", f.Name, data, ok)
			}
		}
		if data, ok := encode(telemetry.Field{Name: "tool", Kind: telemetry.Word}, secret); ok && secret != "WDJB-MJHT" {
			t.Errorf("a secret word was encoded as %s", data)
		}
	}
	if data, ok := encode(telemetry.Field{Name: "client", Kind: telemetry.Name}, "Claude Code\n"); !ok ||
		string(data) != `"Claude Code"` {
		t.Errorf("a name was encoded as %s, %v", data, ok)
	}
}
