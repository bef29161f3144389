package control

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	controlv1 "github.com/service-dev/service/proto/control/v1"
)

func TestCallTool(t *testing.T) {
	client := dial(t, &fake{})
	call := func(ctx context.Context, name, args string) (*controlv1.CallToolResponse, error) {
		stream, err := client.CallTool(ctx, &controlv1.CallToolRequest{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return stream.Recv()
	}
	if r, err := call(t.Context(), "x", ""); err != nil || r.GetResult().GetStructured() != "{}" ||
		r.GetResult().GetIsError() {
		t.Fatalf("%v, %v", r, err)
	}
	if r, err := call(t.Context(), "bad", `{"a":1}`); err != nil || !r.GetResult().GetIsError() {
		t.Fatalf("%v, %v", r, err)
	}
	_, err := call(t.Context(), "x", "{")
	if e := told(t, err); e.GetCode() != "invalid_request" || status.Code(err) != codes.InvalidArgument {
		t.Fatalf("%v", e)
	}
	_, err = call(t.Context(), "panic", "")
	if e := told(t, err); e.GetCode() != "internal" || status.Convert(err).Message() == "sdc_secret" {
		t.Fatalf("%v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if r, err := call(ctx, "wait", ""); err != nil || r.GetProgress().GetMessage() != "half" {
		t.Fatalf("%v, %v", r, err)
	}
	// The call must end with its caller; the cleanup checks that.
	cancel()
}

// A session that a client's stream created ends with the stream: when the client cancels it, when its connection
// breaks, and when the daemon stops. An existing session stays open.
func TestSessionEndsWithItsStream(t *testing.T) {
	opened := func(t *testing.T, ctl controlv1.ControlClient, status string) (context.CancelFunc,
		grpc.ServerStreamingClient[controlv1.OpenLocalSessionResponse]) {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := ctl.OpenLocalSession(ctx, &controlv1.OpenLocalSessionRequest{Arguments: `{"status":"` + status + `"}`})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := stream.Recv(); err != nil || !strings.Contains(r.GetResult().GetStructured(), "loc_1") {
			t.Fatalf("%v, %v", r, err)
		}
		return cancel, stream
	}
	f := &fake{closed: make(chan string, 1)}
	path, _ := serve(t, f, Limits{})

	letGo, _ := opened(t, visit(t, path), "active")
	letGo()
	if id := <-f.closed; id != "loc_1" {
		t.Errorf("closed %s", id)
	}

	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	letGo, _ = opened(t, controlv1.NewControlClient(conn), "active")
	defer letGo()
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	<-f.closed

	letGo, stream := opened(t, visit(t, path), "error")
	defer letGo()
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("no session was created: %v, want EOF", err)
	}

	letGo, _ = opened(t, visit(t, path), "resumed")
	letGo()
	// The daemon stops at the end of this subtest, before the client.
	t.Run("daemon", func(daemon *testing.T) {
		path, _ := serve(daemon, f, Limits{})
		letGo, _ := opened(t, visit(t, path), "active")
		t.Cleanup(letGo)
	})
	if len(f.closed) != 1 {
		t.Errorf("%d sessions were closed when the daemon stopped, want only the created one", len(f.closed))
	}
}
