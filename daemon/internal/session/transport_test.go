package session

import (
	"context"
	"errors"
	"testing"
)

// deafGlasses are disconnected, but their stream has not ended yet.
type deafGlasses struct{}

func (deafGlasses) Send([]byte, bool) error { return errors.New("the pipe is closed") }

func (deafGlasses) Receive(ctx context.Context) ([]byte, bool, error) { return nil, false, ctx.Err() }

func (deafGlasses) Close() error { return nil }

func TestSendControl_ForgetsWhatWasNotSent(t *testing.T) {
	tr := newTransport()
	tr.attach(deafGlasses{})
	if _, err := tr.sendControl("ctl-1", []byte(`{}`), false); err == nil {
		t.Fatal("sendControl succeeded although the frame could not be sent")
	}
	if tr.takeAnswer("ctl-1") != nil {
		t.Error("the transport waits for the answer to a frame that was not sent")
	}
}
