package backendlocal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

func refusalIn(t *testing.T, err error) (codes.Code, *pluginv1.Problem) {
	t.Helper()
	st, _ := status.FromError(err)
	for _, d := range st.Details() {
		if p, ok := d.(*pluginv1.Problem); ok {
			return st.Code(), p
		}
	}
	t.Fatalf("the error contains no Problem: %v", err)
	return 0, nil
}

// Every attempt with a key that does not match the database returns a permanent error that contains the fix.
func TestLostKeyIsNotToBeTriedAgain(t *testing.T) {
	dir := t.TempDir()
	describe := func() error {
		l := newLocal(nil)
		_, err := l.Describe(t.Context(), &pluginv1.DescribeRequest{ConfigDir: []byte(dir)})
		if l.stop != nil {
			l.stop()
			<-l.stopped
		}
		return err
	}
	if err := describe(); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, dataDir, "hmac.key")
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	code, p := refusalIn(t, describe())
	for _, says := range []string{"service-backend admin replace-key", key, filepath.Join(dir, dataDir, "service.db"),
		"move the directory away"} {
		if !strings.Contains(p.GetMessage(), says) {
			t.Errorf("%q is missing from the message %q", says, p.GetMessage())
		}
	}
	if code != codes.FailedPrecondition || p.GetRetryable() ||
		strings.Contains(strings.ToLower(p.GetFixHint()), "try again") {
		t.Errorf("got %s, %v, want a permanent FailedPrecondition", code, p)
	}
	code, p = refusalIn(t, newLocalAt(t, "relative"))
	if code != codes.Unavailable || !p.GetRetryable() {
		t.Errorf("another cause: got %s, %v, want a retryable Unavailable", code, p)
	}
}

// Calls with a token use the IP address of the embedded backend's own listener, because another user could listen on
// localhost.
func TestCallsGoToOurOwnListener(t *testing.T) {
	l := newLocal(nil)
	d, err := l.Describe(t.Context(), &pluginv1.DescribeRequest{ConfigDir: []byte(t.TempDir())})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(t.Context()) }()
	at, err := l.locate(t.Context(), nil)
	if err != nil || strings.Replace(d.GetBaseUrl(), "localhost", "127.0.0.1", 1) != at {
		t.Errorf("people use %s, calls use %s, error %v; want localhost and 127.0.0.1", d.GetBaseUrl(), at, err)
	}
	call := func(route string) (*pluginv1.CallResponse, error) {
		return l.Call(t.Context(), &pluginv1.CallRequest{Route: route})
	}
	if r, err := call(backendapi.RouteHealth); err != nil || !strings.Contains(string(r.GetBody()), `"ok":true`) {
		t.Errorf("got health %v, error %v; want ok", r, err)
	}
	for _, route := range []string{backendapi.RouteUploadTelemetry, backendapi.RoutePurgeTelemetry} {
		_, err := call(route)
		if code, p := refusalIn(t, err); code != codes.Unimplemented || p.GetCode() != problem.CodeNotConfigured {
			t.Errorf("%s: got %v, want it refused", route, err)
		}
	}
}

func newLocalAt(t *testing.T, dir string) error {
	t.Helper()
	_, err := newLocal(nil).Describe(t.Context(), &pluginv1.DescribeRequest{ConfigDir: []byte(dir)})
	return err
}

// Commands on the pages contain the state directory only if the tools cannot find it by themselves.
func TestStateDir(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for dir, want := range map[string]string{
		filepath.Join(home, ".service"):                              "",
		filepath.Join(home, ".service") + string(filepath.Separator): "",
		filepath.Join(home, "src", ".run"):                           filepath.Join(home, "src", ".run"),
	} {
		if got := stateDir(dir); got != want {
			t.Errorf("state directory %s: got %q, want %q", dir, got, want)
		}
	}
}
