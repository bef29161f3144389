package control

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/link"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

func TestLoginStreams(t *testing.T) {
	f := &fake{outcome: func(_ context.Context, onPoll func(link.PollEvent)) (link.Outcome, error) {
		onPoll(link.PollEvent{PollCount: 1, Remaining: time.Minute})
		return link.Outcome{AccountID: "a", Tier: "free_account", LinkedAt: time.Now(), PollCount: 2}, nil
	}}
	stream, err := dial(t, f).Login(t.Context(), &controlv1.LoginRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch ev := e.GetEvent().(type) {
		case *controlv1.LoginResponse_Code:
			kinds = append(kinds, "code "+ev.Code.GetUserCode())
		case *controlv1.LoginResponse_Opened:
			kinds = append(kinds, "opened "+ev.Opened.GetReason())
		case *controlv1.LoginResponse_Waiting:
			kinds = append(kinds, "waiting")
		case *controlv1.LoginResponse_Linked:
			kinds = append(kinds, "linked "+ev.Linked.GetAccountId())
		}
	}
	want := []string{"code BCDF-GHJK", "opened disabled", "waiting", "linked a"}
	if len(kinds) != 4 || kinds[0] != want[0] || kinds[1] != want[1] || kinds[2] != want[2] || kinds[3] != want[3] {
		t.Fatalf("got %v", kinds)
	}
}

func TestLoginEndsWithItsClient(t *testing.T) {
	f := &fake{waited: make(chan struct{}), outcome: func(ctx context.Context, _ func(link.PollEvent)) (link.Outcome,
		error) {
		<-ctx.Done()
		return link.Outcome{}, ctx.Err()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := dial(t, f).Login(ctx, &controlv1.LoginRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-f.waited:
	case <-time.After(5 * time.Second):
		t.Fatal("the polling continued after the client disconnected")
	}
}

func TestLoginRefusedIsAnEvent(t *testing.T) {
	f := &fake{begin: &backend.Problem{Code: backend.CodeUnreachable, Message: "no", Retryable: true, FixHint: "later"}}
	stream, err := dial(t, f).Login(t.Context(), &controlv1.LoginRequest{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := stream.Recv()
	if err != nil || e.GetError().GetCode() != backend.CodeUnreachable || !e.GetError().GetRetryable() {
		t.Fatalf("%v, %v", e, err)
	}
}
