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

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/daemon/internal/tools"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// fake is a minimal daemon. Its fields are set before it is served.
type fake struct {
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
	}
	return tools.Result{Structured: args, IsError: name == "bad"}
}

// dial serves f on a real socket until the test ends.
func dial(t *testing.T, f *fake) controlv1.ControlClient {
	t.Helper()
	path, _ := serve(t, f, Limits{})
	return visit(t, path)
}

// visit connects to a socket.
func visit(t *testing.T, path string) controlv1.ControlClient {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return controlv1.NewControlClient(conn)
}

// serve serves f at a socket until the test ends.
func serve(t *testing.T, f *fake, limits Limits) (path string, s *Server) {
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
	s = New(Options{Limits: limits, Accounts: f, Logins: f, Consents: f, Telemetry: f, Tools: f, System: f,
		Log: slog.New(slog.DiscardHandler), Now: time.Now, About: About{PID: 7, Version: "1"}})
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

func told(t *testing.T, err error) *controlv1.Error {
	t.Helper()
	for _, d := range status.Convert(err).Details() {
		if e, ok := d.(*controlv1.Error); ok {
			return e
		}
	}
	t.Fatalf("no typed error in %v", err)
	return nil
}

func TestWhoamiVerdicts(t *testing.T) {
	linked := account.Link{State: account.Linked, AccountID: "a", AuthToken: "svc_secret"}
	good, bad := linked, linked
	good.Verified = account.Verdict{At: time.Now().Add(-time.Second), OK: true}
	bad.Verified = account.Verdict{At: time.Now(), Err: "no network"}
	cases := map[string]struct {
		link account.Link
		want string
	}{
		"linked":      {good, "linked"},
		"never asked": {linked, "linked"},
		"offline":     {bad, "unknown"},
		"not linked":  {account.Link{State: account.NotLinked}, "not_linked"},
		"corrupt":     {account.Link{State: account.Corrupt}, "not_linked"},
		"revoked":     {account.Link{State: account.Revoked, AccountID: "a"}, "not_linked"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := dial(t, &fake{link: c.link, verified: good})
			r, err := client.Whoami(t.Context(), &controlv1.WhoamiRequest{})
			if err != nil || r.GetVerdict() != c.want || r.GetInstallId() != "inst_1" {
				t.Fatalf("%v, %v", r, err)
			}
			if name != "never asked" && r.GetLink().GetVerifiedAgeMs() < 0 != c.link.Verified.At.IsZero() {
				t.Errorf("age %d", r.GetLink().GetVerifiedAgeMs())
			}
			if r, err = client.Whoami(t.Context(), &controlv1.WhoamiRequest{Refresh: true}); err != nil ||
				r.GetVerdict() != "linked" {
				t.Fatalf("refreshed: %v, %v; want linked", r, err)
			}
		})
	}
}

func TestCallerIsFiltered(t *testing.T) {
	f := &fake{}
	client := dial(t, f)
	_, err := client.Status(t.Context(), &controlv1.StatusRequest{Caller: &controlv1.Caller{
		Env: map[string]string{"CI": "1", "PATH": "/evil", "SERVICE_CONFIG_DIR": "/other",
			"BROWSER": "a\x00b"}, Cwd: []byte("relative"), Client: "ctl\x1b[31m",
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := f.callers[0]
	if len(got.Env) != 1 || got.Env["CI"] != "1" || got.Cwd != "" || got.Client != "ctl[31m" {
		t.Fatalf("caller: %+v", got)
	}
}

func TestHelloRefusesStrangers(t *testing.T) {
	client := dial(t, &fake{})
	if r, err := client.Hello(t.Context(), &controlv1.HelloRequest{ProtocolMin: 1, ProtocolMax: 9}); err != nil ||
		r.GetPid() != 7 {
		t.Fatalf("%v, %v", r, err)
	}
	cases := map[string]struct {
		min, max   uint32
		what, next string
	}{
		"a newer client": {8, 9, "the daemon is too old", "servicectl daemon restart"},
		"an older one":   {0, 0, "the client is too old", "Upgrade the client"},
		"an empty range": {2, 1, "too old", "e"},
	}
	for name, c := range cases {
		_, err := client.Hello(t.Context(), &controlv1.HelloRequest{ProtocolMin: c.min, ProtocolMax: c.max})
		e := told(t, err)
		if e.GetCode() != "protocol_mismatch" || !strings.Contains(e.GetMessage(), c.what) ||
			!strings.Contains(e.GetFixHint(), c.next) {
			t.Errorf("%s: %v", name, e)
		}
	}
}

func TestConsentWords(t *testing.T) {
	client := dial(t, &fake{})
	_, err := client.SetConsent(t.Context(), &controlv1.SetConsentRequest{State: "maybe"})
	if e := told(t, err); e.GetCode() != "invalid_request" {
		t.Fatalf("%v", e)
	}
	if r, err := client.SetConsent(t.Context(), &controlv1.SetConsentRequest{State: "declined"}); err != nil ||
		r.GetFile() == "" {
		t.Fatalf("%v, %v", r, err)
	}
}

func TestStopIsAnsweredFirst(t *testing.T) {
	f := &fake{}
	if r, err := dial(t, f).Stop(t.Context(), &controlv1.StopRequest{}); err != nil || r.GetPid() != 7 || !f.stopped {
		t.Fatalf("%v, %v", r, err)
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
	f := &fake{plugins: []Plugin{{Name: "x", Path: "/caf\xe9/x", LastError: "open /caf\xe9"}}}
	c := dial(t, f)
	list, err := c.ListPlugins(t.Context(), &controlv1.ListPluginsRequest{})
	if err != nil || list.GetPlugins()[0].GetPath() != "/caf\uFFFD/x" ||
		list.GetPlugins()[0].GetLastError() != "open /caf\uFFFD" {
		t.Errorf("%v, %v", list, err)
	}
	err = statusError(&backend.Problem{Code: "some_code", Message: "writing /caf\xe9", FixHint: "look at /caf\xe9"})
	if e, ok := detailOf(err); !ok || e.GetCode() != "some_code" || e.GetMessage() != "writing /caf\uFFFD" {
		t.Errorf("%v", err)
	}
}

func detailOf(err error) (*controlv1.Error, bool) {
	for _, d := range status.Convert(err).Details() {
		if e, ok := d.(*controlv1.Error); ok {
			return e, true
		}
	}
	return nil, false
}
