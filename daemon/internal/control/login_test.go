package control

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/internal/problem"
	api "github.com/service-dev/service/proto/control"
	"github.com/service-dev/service/test/controltest"
)

func TestLoginStreams(t *testing.T) {
	f := &fake{outcome: func(_ context.Context, onPoll func(link.PollEvent)) (link.Outcome, error) {
		onPoll(link.PollEvent{PollCount: 1, Remaining: time.Minute})
		return link.Outcome{AccountID: "a", Tier: "free_account", LinkedAt: time.Now(), PollCount: 2}, nil
	}}
	stream, err := controltest.Stream(t.Context(), dial(t, f), api.Login, api.LoginRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for {
		e, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Code != nil:
			kinds = append(kinds, "code "+e.Code.UserCode)
		case e.Opened != nil:
			kinds = append(kinds, "opened "+e.Opened.Reason)
		case e.Waiting != nil:
			kinds = append(kinds, "waiting")
		case e.Linked != nil:
			kinds = append(kinds, "linked "+e.Linked.AccountID)
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
	stream, err := controltest.Stream(ctx, dial(t, f), api.Login, api.LoginRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Next(); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-f.waited:
	case <-time.After(10 * time.Second):
		t.Fatal("the polling continued after the client disconnected")
	}
}

func TestLoginIsRefused(t *testing.T) {
	f := &fake{begin: &problem.Error{Code: problem.CodeBackendUnreachable, Message: "no", Retryable: true,
		FixHint: "later"}}
	_, err := controltest.Stream(t.Context(), dial(t, f), api.Login, api.LoginRequest{})
	if e := refusalOf(t, err); e.Code != problem.CodeBackendUnreachable || !e.Retryable || e.FixHint != "later" {
		t.Fatalf("%+v", e)
	}
}
