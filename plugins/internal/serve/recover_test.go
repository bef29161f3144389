package serve

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/internal/problem"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

func TestPanicIsATypedRefusal(t *testing.T) {
	var log bytes.Buffer
	l := slog.New(slog.NewTextHandler(&log, nil))
	_, call := recoverUnary(l)(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/x"},
		func(context.Context, any) (any, error) { panic("svc_secret") })
	stream := recoverStream(l)(nil, nil, &grpc.StreamServerInfo{FullMethod: "/x"},
		func(any, grpc.ServerStream) error { panic("svc_secret") })
	for _, err := range []error{call, stream} {
		details := status.Convert(err).Details()
		if len(details) != 1 {
			t.Fatalf("got details %v, want one", err)
		}
		if p, ok := details[0].(*pluginv1.Problem); !ok || p.Code != problem.CodeAdapterUnavailable || !p.Retryable ||
			p.FixHint == "" {
			t.Fatalf("got %v, want a retryable CodeAdapterUnavailable with a fixHint", details[0])
		}
		if strings.Contains(err.Error(), "svc_secret") || strings.Contains(log.String(), `"svc_secret"`) {
			t.Fatalf("the panic's value is in the error or the log: %v", log.String())
		}
	}
}

func TestHostGone(t *testing.T) {
	// waitForHost returns because the other end is closed.
	waitForHost(strings.NewReader("noise is no reason to stay"))
}
