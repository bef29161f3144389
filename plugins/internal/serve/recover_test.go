package serve

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

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

// A call that only another version has is refused with the next step.
func TestUnknownCallIsATypedRefusal(t *testing.T) {
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.UnknownServiceHandler(refuseUnknown))
	pluginv1.RegisterBackendServer(server, pluginv1.UnimplementedBackendServer{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() { server.Stop(); <-served }()
	conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, method := range []string{"/service.plugin.v1.Backend/Old", "/service.plugin.v1.Sessions/GetSession"} {
		err := conn.Invoke(t.Context(), method, &pluginv1.DescribeRequest{}, &pluginv1.DescribeResponse{})
		details := status.Convert(err).Details()
		if status.Code(err) != codes.Unimplemented || len(details) != 1 {
			t.Fatalf("%s: got %v with details %v, want one", method, err, details)
		}
		if p, ok := details[0].(*pluginv1.Problem); !ok || p.Code != problem.CodeAdapterUnavailable ||
			!strings.Contains(p.FixHint, "servicectl daemon restart") {
			t.Errorf("%s: got %v, want CodeAdapterUnavailable with the command to run", method, details[0])
		}
	}
}

func TestHostGone(t *testing.T) {
	// waitForHost returns because the other end is closed.
	waitForHost(strings.NewReader("noise is no reason to stay"))
}
