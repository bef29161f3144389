package control

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/daemon/internal/tools"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
	api "github.com/service-dev/service/proto/control"
	"github.com/service-dev/service/test/controltest"
)

// fake is a minimal daemon. Its fields are set before it is served.
type fake struct {
	Daemon                   // the methods that no test calls
	notice   func(sent bool) // if set, the notice is pending
	link     account.Link
	verified account.Link
	begin    error
	load     Load
	plugins  []Plugin
	outcome  func(ctx context.Context, onPoll func(link.PollEvent)) (link.Outcome, error)
	waited   chan struct{} // closed when a wait ends

	mu      sync.Mutex
	callers []caller.Caller
	stopped bool
	closed  chan string // ids of closed sessions, if set
}

func (f *fake) seen(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.callers = append(f.callers, caller.From(ctx))
}

func (f *fake) InstallID() string                     { return "inst_1" }
func (f *fake) Link(ctx context.Context) account.Link { f.seen(ctx); return f.link }
func (f *fake) Verify(context.Context) account.Link   { return f.verified }

func (f *fake) Logout(context.Context) (LoggedOut, error) {
	return LoggedOut{Was: true, Path: "/x/auth.json", RevokeURL: "https://x.test/account"}, nil
}
func (f *fake) Open(context.Context, string) (bool, string) { return false, "disabled" }
func (f *fake) Consent(context.Context) Consent {
	return Consent{State: "unset",
		DecidedBy: "default"}
}
func (f *fake) SetConsent(context.Context, string) (string, error) { return "/x/consent", nil }
func (f *fake) List() []tools.Tool                                 { return []tools.Tool{{Name: "whoAmI"}} }
func (f *fake) Plugins() []Plugin                                  { return f.plugins }
func (f *fake) Load() Load                                         { return f.load }
func (f *fake) Backend(context.Context) Backend                    { return Backend{Kind: "embedded"} }
func (f *fake) Doctor(context.Context) []Check                     { return []Check{{Name: "a", State: "ok"}} }
func (f *fake) HoldLocalSession(id string) func(context.Context) error {
	return func(context.Context) error {
		f.closed <- id
		return nil
	}
}
func (f *fake) Stop() { f.mu.Lock(); f.stopped = true; f.mu.Unlock() }
func (f *fake) Code() link.Code {
	return link.Code{DeviceCode: backend.DeviceCode{DeviceCode: "sdc_secret", UserCode: "BCDF-GHJK",
		VerificationURL: "http://x", ExpiresIn: 10 * time.Minute, PollInterval: 5 * time.Second}}
}

func (f *fake) Begin(context.Context, bool) (Attempt, error) {
	if f.begin != nil {
		return nil, f.begin
	}
	return f, nil
}

func (f *fake) Wait(ctx context.Context, onPoll func(link.PollEvent)) (link.Outcome, error) {
	defer close(f.waited)
	return f.outcome(ctx, onPoll)
}

func (f *fake) Call(ctx context.Context, name string, args json.RawMessage, io tools.IO) tools.Result {
	switch name {
	case "panic":
		panic("sdc_secret")
	case toolStartLocal:
		var asked struct{ Status string }
		_ = json.Unmarshal(args, &asked)
		return tools.Result{Structured: json.RawMessage(`{"status":"` + asked.Status + `","sessionId":"loc_1"}`),
			IsError: asked.Status == "error"}
	case "wait":
		io.Progress(1, 2, "half")
		<-ctx.Done()
	case "slow":
		time.Sleep(300 * time.Millisecond) // longer than the deadlines that are under test
		io.Progress(1, 2, "half")
	case "half":
		io.Progress(1, 2, "half")
		panic("sdc_secret")
	case "flood":
		for ctx.Err() == nil {
			io.Progress(1, 2, strings.Repeat("x", 64<<10))
		}
	}
	return tools.Result{Structured: args, IsError: name == "bad"}
}

// dial serves f on a real socket until the test ends.
func dial(t *testing.T, f *fake) *controltest.Client {
	t.Helper()
	path, _ := serve(t, f, Limits{})
	return controltest.New(t, path)
}

// serve serves f at a socket until the test ends.
func serve(t *testing.T, f *fake, limits Limits) (path string, s *Server) {
	t.Helper()
	return serveWithin(t, f, limits, usualDeadlines)
}

// serveWithin is serve with other deadlines.
func serveWithin(t *testing.T, f *fake, limits Limits, d deadlines) (path string, s *Server) {
	t.Helper()
	if f.waited == nil {
		f.waited = make(chan struct{})
	}
	dir, err := os.MkdirTemp("/tmp", "c")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "c.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s = New(Options{Limits: limits, Daemon: f, Tools: f,
		Log: slog.New(slog.DiscardHandler), Now: time.Now, About: About{PID: 7, Version: "1"}})
	s.deadlines = d
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if s.Active() != 0 {
			t.Errorf("%d calls are still in progress, want 0", s.Active())
		}
		os.RemoveAll(dir)
	})
	return path, s
}

// refusalOf returns the error of a refused call.
func refusalOf(t *testing.T, err error) *problem.Error {
	t.Helper()
	e := problem.From(err)
	if e == nil {
		t.Fatalf("got %v, want a refusal", err)
	}
	return e
}

func TestWhoamiVerdicts(t *testing.T) {
	linked := account.Link{State: account.Linked, AccountID: "a", AuthToken: "svc_secret"}
	good, bad := linked, linked
	good.Verified = account.Verdict{At: time.Now().Add(-time.Second), OK: true}
	bad.Verified = account.Verdict{At: time.Now(), Err: "no network"}
	cases := map[string]struct {
		link account.Link
		want string // the field linked as JSON
	}{
		"linked":      {good, "true"},
		"never asked": {linked, "true"},
		"offline":     {bad, "null"},
		"not linked":  {account.Link{State: account.NotLinked}, "false"},
		"corrupt":     {account.Link{State: account.Corrupt}, "false"},
		"revoked":     {account.Link{State: account.Revoked, AccountID: "a"}, "false"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := dial(t, &fake{link: c.link, verified: good})
			r, err := controltest.Call(t.Context(), client, api.Whoami, api.WhoamiRequest{})
			if got, _ := json.Marshal(r.Linked); err != nil || string(got) != c.want || r.InstallID != "inst_1" {
				t.Fatalf("linked is %s, want %s: %+v, %v", got, c.want, r, err)
			}
			if name != "never asked" && (r.VerifiedAgeSeconds == nil) != c.link.Verified.At.IsZero() {
				t.Errorf("age %v", r.VerifiedAgeSeconds)
			}
			r, err = controltest.Call(t.Context(), client, api.Whoami, api.WhoamiRequest{Refresh: true})
			if err != nil || r.Linked == nil || !*r.Linked {
				t.Fatalf("refreshed: %+v, %v; want linked", r, err)
			}
		})
	}
}

func TestCallerIsFiltered(t *testing.T) {
	f := &fake{}
	client := dial(t, f).As(api.Caller{
		Env: map[string]string{"CI": "1", "PATH": "/evil", "SERVICE_CONFIG_DIR": "/other", "BROWSER": "a\x00b"},
		Cwd: "relative", Client: "ctl\x1b[31m",
	})
	if _, err := controltest.Call(t.Context(), client, api.GetStatus, api.None{}); err != nil {
		t.Fatal(err)
	}
	got := f.callers[0]
	if len(got.Env) != 1 || got.Env["CI"] != "1" || got.Cwd != "" || got.Client != "ctl[31m" {
		t.Fatalf("caller: %+v", got)
	}
}

func TestVersionNamesTheProtocols(t *testing.T) {
	v, err := controltest.Call(t.Context(), dial(t, &fake{}), api.GetVersion, api.None{})
	want := api.Version{Version: "1", PID: 7, ProtocolMin: rendezvous.ControlProtocolMin,
		ProtocolMax: rendezvous.ControlProtocolMax}
	if err != nil || v != want {
		t.Errorf("got %+v, %v; want %+v", v, err, want)
	}
}

func TestConsentWords(t *testing.T) {
	client := dial(t, &fake{})
	_, err := controltest.Call(t.Context(), client, api.SetConsent, api.ConsentRequest{State: "maybe"})
	if e := refusalOf(t, err); e.Code != "invalid_request" {
		t.Fatalf("%v", e)
	}
	r, err := controltest.Call(t.Context(), client, api.SetConsent, api.ConsentRequest{State: "declined"})
	if err != nil || r.File == "" || r.Consent != "unset" || r.DecidedBy != "default" {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestStopIsAnsweredFirst(t *testing.T) {
	f := &fake{}
	r, err := controltest.Call(t.Context(), dial(t, f), api.Stop, api.None{})
	if err != nil || r.PID != 7 || !f.stopped {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestCheckPeerLetsOurselvesIn(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if CheckPeer(a) == nil {
		t.Error("CheckPeer accepted a pipe, whose peer is unknown")
	}
}

// Text that is not UTF-8, such as a path on an older system, reaches the client as valid UTF-8.
func TestTextsThatAreNotUTF8(t *testing.T) {
	f := &fake{plugins: []Plugin{{Name: "x", Path: "/caf\xe9/x", LastError: "open /caf\xe9"}},
		begin: &problem.Error{Code: problem.CodeBusy, Message: "writing /caf\xe9", FixHint: "look at /caf\xe9"}}
	c := dial(t, f)
	list, err := controltest.Call(t.Context(), c, api.ListPlugins, api.None{})
	if err != nil || list.Plugins[0].Path != "/caf\uFFFD/x" || list.Plugins[0].LastError != "open /caf\uFFFD" {
		t.Errorf("%+v, %v", list, err)
	}
	_, err = controltest.Stream(t.Context(), c, api.Login, api.LoginRequest{})
	if e := refusalOf(t, err); e.Code != problem.CodeBusy || e.Message != "writing /caf\uFFFD" {
		t.Errorf("%v", err)
	}
}
