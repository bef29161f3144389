//go:build unix

package app

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/pluginhost"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/adapterfile"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/test/ownadapter"
)

// recorder is Go source that is added to the adapter. It saves the arguments, the environment, the headers of calls and
// the messages that the adapter receives to files next to the program.
const recorder = `package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"
)

var file = func() *os.File {
	f, err := os.OpenFile(os.Args[0]+".received", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return f
}()

func init() { fmt.Fprintln(file, strings.Join(os.Args, "\n"), "\n", strings.Join(os.Environ(), "\n")) }

type codec struct{ encoding.CodecV2 }

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	fmt.Fprintf(file, "message %s\n", data.Materialize())
	return c.CodecV2.Unmarshal(data, v)
}

type headers struct{}

func (headers) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (headers) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (headers) HandleConn(context.Context, stats.ConnStats)                       {}
func (headers) HandleRPC(_ context.Context, s stats.RPCStats) {
	if h, ok := s.(*stats.InHeader); ok {
		fmt.Fprintln(file, "call", h.FullMethod, h.Header)
	}
}

func recordingServer(opts []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(opts, grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto")}),
		grpc.StatsHandler(headers{}))...)
}
`

// buildOwnAdapter builds the documented adapter once, with the recorder.
var buildOwnAdapter = sync.OnceValues(func() ([]byte, error) {
	source, err := ownadapter.Source()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "own")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program, err := ownadapter.Build("../../..", dir, strings.Replace(source, "plugin.DefaultGRPCServer",
		"recordingServer", 1), map[string]string{"recorder.go": recorder})
	if err != nil {
		return nil, err
	}
	return os.ReadFile(program)
})

// addOwnAdapter adds the documented adapter to the daemon of a state directory, as servicectl does.
func addOwnAdapter(t *testing.T, l *locals, stateDir string) (path string) {
	t.Helper()
	program, err := buildOwnAdapter()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "my-glasses")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := approveAdapter(t, l, stateDir, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func approveAdapter(t *testing.T, l *locals, stateDir, path string) (pluginhost.PluginStatus, error) {
	t.Helper()
	file, err := adapterfile.Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	withdraw, err := adapterfile.Approve(stateDir, file)
	if err != nil {
		t.Fatal(err)
	}
	defer withdraw()
	return l.host.Add(t.Context(), file.Path, file.SHA256)
}

func (l *locals) plugin(name string) pluginhost.PluginStatus {
	list := l.host.Plugins()
	if i := slices.IndexFunc(list, func(p pluginhost.PluginStatus) bool { return p.Name == name }); i >= 0 {
		return list[i]
	}
	return pluginhost.PluginStatus{}
}

func problemCode(err error) string {
	var p *problem.Error
	if !errors.As(err, &p) || p.FixHint == "" {
		return ""
	}
	return p.Code
}

// An adapter built from the documentation is added, listed, used and supervised like the built-in ones, across a
// restart of the daemon, until its file changes or it is removed.
func TestOwnAdapter_IsUsedAndSupervisedLikeOurs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := startLocals(t, dir)
	own := session.LocalRequest{Project: "com.example.app", Transport: "my-glasses"}
	if _, err := l.StartLocal(t.Context(), caller.Caller{}, own); problemCode(err) != problem.CodeUnknownTransport ||
		!strings.Contains(err.Error(), "localsim") {
		t.Fatalf("before it is added: %v", err)
	}
	path := addOwnAdapter(t, l, dir)
	if p := l.plugin("my-glasses"); p.State != pluginhost.Stopped || p.Owner == "" || p.Added.IsZero() ||
		len(p.SHA256) != 64 || p.Title != "My glasses" {
		t.Fatalf("listed as %+v", p)
	}
	if list := l.host.Transports(); len(list) != 4 || list[3].Name != "my-glasses" || list[3].VirtualClock {
		t.Fatalf("%+v", list)
	}
	for _, refused := range []session.LocalRequest{
		{Project: own.Project, Transport: own.Transport, Clock: backend.ClockVirtual},
		{Project: own.Project, Transport: own.Transport, DeviceModel: "rayban_display"},
	} {
		if _, err := l.StartLocal(t.Context(), caller.Caller{}, refused); problemCode(err) != problem.CodeUnsupported {
			t.Errorf("%+v: %v", refused, err)
		}
	}
	o, err := l.StartLocal(t.Context(), caller.Caller{}, own)
	if err != nil || o.Transport != "my-glasses" || o.DeviceModel != "even_g1" {
		t.Fatalf("%+v, %v", o.Session, err)
	}
	attach(t, o, true, func(a *testApp) { a.ask(glasses.TypeDisplayShow, text("shown")) },
		func(*testApp, glasses.Frame) {})
	l.until(t, o.SessionID, 0, func(e glasses.Event) bool { return e.Kind == glasses.KindResult })
	isShown := func(l *locals) {
		t.Helper()
		if d, err := l.Display(t.Context(), backend.Target{}, o.SessionID); err != nil || d.Text()[0] != "shown" {
			t.Errorf("%+v, %v", d.Text(), err)
		}
	}
	isShown(l)
	attachedAfter := func(l *locals, seq int64) int64 {
		return l.until(t, o.SessionID, seq, func(e glasses.Event) bool { return e.Type == glasses.RowGlassesAttached }).Seq
	}
	first := attachedAfter(l, 0)
	_ = syscall.Kill(l.plugin("my-glasses").PID, syscall.SIGKILL)
	second := attachedAfter(l, first)
	isShown(l)
	if p := l.plugin("my-glasses"); p.State != pluginhost.Running || p.Restarts != 1 || !p.Verified {
		t.Errorf("after a crash: %+v", p)
	}
	l.stop()
	l = startLocals(t, dir)
	isShown(l)
	third := attachedAfter(l, second)
	if s, err := l.Get(t.Context(), backend.Target{}, o.SessionID); err != nil || s.Transport != "my-glasses" {
		t.Errorf("after a restart: %+v, %v", s, err)
	}
	// A file that changed is not started again.
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", append(program, 'x'), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	l.stop()
	l = startLocals(t, dir)
	_, err = l.Display(t.Context(), backend.Target{}, o.SessionID)
	if problemCode(err) != problem.CodeAdapterUnavailable || !strings.Contains(err.Error(), "checksum") ||
		l.plugin("my-glasses").State != problem.CodeRefused {
		t.Errorf("after its file changed: %v, %+v", err, l.plugin("my-glasses"))
	}
	// Adding it again approves the new file, and the session continues. Once it is removed, the error says how
	// to add it.
	if _, err := approveAdapter(t, l, dir, path); err != nil {
		t.Fatal(err)
	}
	attachedAfter(l, third)
	isShown(l)
	if _, err := l.host.Remove("my-glasses"); err != nil {
		t.Fatal(err)
	}
	for problemCode(err) != problem.CodeUnknownTransport { // until the session has noticed
		_, err = l.Display(t.Context(), backend.Target{}, o.SessionID)
	}
	if _, err := l.StartLocal(t.Context(), caller.Caller{}, own); problemCode(err) != problem.CodeUnknownTransport ||
		!strings.Contains(err.Error(), "was removed") {
		t.Errorf("after its removal: %v", err)
	}
}

// An added adapter never sees the token of a linked account, the secret of an app, or the daemon's variables.
func TestOwnAdapter_NeverSeesASecret(t *testing.T) {
	dir := t.TempDir()
	const token = "svc_linkedaccountstoken"
	for name, value := range map[string]string{
		"SERVICE_AUTH_TOKEN": "hush", "SERVICE_BACKEND_URL": "http://hush", "AWS_SECRET_ACCESS_KEY": "hush",
		"HTTPS_PROXY": "http://me:hush@proxy.test", "https_proxy": "http://me:hush@proxy.test",
	} {
		t.Setenv(name, value)
	}
	auth := `{"authToken":"` + token + `","accountId":"acc_private","backendUrl":"https://x.test"}`
	if err := os.WriteFile(filepath.Join(dir, "auth.json"), []byte(auth), 0o600); err != nil {
		t.Fatal(err)
	}
	l := startLocals(t, dir)
	path := addOwnAdapter(t, l, dir)
	// A backend adapter uses the account at the same time.
	_, _ = l.host.Account(t.Context(), backend.Target{BaseURL: "http://127.0.0.1:1", Bearer: token})
	o, err := l.StartLocal(t.Context(), caller.Caller{}, session.LocalRequest{Project: "com.example.app",
		Transport: "my-glasses"})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := os.ReadFile(o.AppTokenFile)
	if err != nil {
		t.Fatal(err)
	}
	attach(t, o, true, func(a *testApp) { a.ask(glasses.TypeDisplayShow, text("shown")) },
		func(*testApp, glasses.Frame) {})
	l.until(t, o.SessionID, 0, func(e glasses.Event) bool { return e.Kind == glasses.KindResult })
	received, err := os.ReadFile(path + ".received")
	if err != nil {
		t.Fatal(err)
	}
	for _, expected := range []string{path, "PATH=", "DescribeTransport", "display.show", o.SessionID} {
		if !bytes.Contains(received, []byte(expected)) {
			t.Errorf("the record lacks %q, so it is not complete", expected)
		}
	}
	for _, private := range []string{token, "acc_private", "hush", strings.TrimSpace(string(secret)), dir} {
		if bytes.Contains(received, []byte(private)) {
			t.Errorf("the adapter received %q", private)
		}
	}
}
