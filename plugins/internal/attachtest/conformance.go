package attachtest

import (
	"context"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/conformance"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// conn is a session as a connection to glasses, for the conformance check.
type conn struct {
	pair     *Pair
	messages chan conformance.Message
}

func (c *conn) Messages() <-chan conformance.Message { return c.messages }

func (c *conn) Send(_ context.Context, frame []byte) error {
	return c.pair.stream.Send(&pluginv1.AttachRequest{Message: &pluginv1.AttachRequest_Frame{Frame: frame}})
}

// Conforms checks a session's glasses against the protocol and then ends the session.
func (p *Pair) Conforms(t *testing.T, model string) {
	t.Helper()
	m, ok := glasses.Model(model)
	if !ok {
		t.Fatalf("no device model %s", model)
	}
	c := &conn{pair: p, messages: make(chan conformance.Message, 256)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(c.messages)
		for {
			r, err := p.stream.Recv()
			if err != nil {
				return
			}
			switch {
			case r.GetHardware() != nil:
			case r.GetBinary() != nil:
				c.messages <- conformance.Message{Data: r.GetBinary(), Binary: true}
			default:
				c.messages <- conformance.Message{Data: r.GetFrame()}
			}
		}
	}()
	_, err := conformance.Check(t.Context(), c, m, func(l conformance.Line) {
		if !l.Passed() {
			t.Errorf("%s (%s): %s", l.Name, l.Section, l.Problem)
		}
	})
	if err != nil {
		t.Error(err)
	}
	if err := p.stream.CloseSend(); err != nil {
		t.Error(err)
	}
	for range c.messages { // wait until the session has ended
	}
	<-done
}
