package httpbackend

import (
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/status"

	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// The error of a failed connection contains its address and its cause. An error caused by a sandbox is permanent, so
// it is not retryable.
func TestTransport_NamesAddressAndCause(t *testing.T) {
	for _, c := range []struct {
		cause     syscall.Errno
		retryable bool
		hint      string
	}{{syscall.EPERM, false, "sandbox"}, {syscall.EACCES, false, "sandbox"}, {syscall.ECONNREFUSED, true, "network"}} {
		failed := &url.Error{Op: "Post", URL: "http://localhost:4711/secret", Err: &net.OpError{Op: "dial", Net: "tcp",
			Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}, Err: os.NewSyscallError("connect", c.cause)}}
		details := status.Convert(transport(t.Context(), failed)).Details()
		if len(details) != 1 {
			t.Fatalf("got %v, want a problem", details)
		}
		p, ok := details[0].(*pluginv1.Problem)
		if !ok || p.GetMessage() != "reach backend: 127.0.0.1:4711: "+c.cause.Error() || p.GetRetryable() != c.retryable ||
			!strings.Contains(p.GetFixHint(), c.hint) {
			t.Errorf("%v: got %v, want its address, cause and a hint about the %s", c.cause, p, c.hint)
		}
	}
}
