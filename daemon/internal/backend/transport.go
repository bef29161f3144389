package backend

import (
	"context"

	"github.com/service-dev/service/proto/glasses"
)

// TransportOpen opens the glasses of one session with a transport.
type TransportOpen struct {
	SessionID   string
	DeviceModel string
	// Virtual time starts at NowMs and moves only with sim.advance. Real time is that of the machine.
	Virtual bool
	NowMs   int64 // the session's clock, in ms
	// Snapshot is the saved state of the glasses; nil for new ones.
	Snapshot *glasses.Snapshot
	// FixturesDir is an absolute folder with pictures and sounds; if empty, the simulator uses its own.
	FixturesDir string
}

// Glasses is an attached pair. Send and Receive may each be called by one goroutine at a time, Close by any number.
type Glasses interface {
	// Send sends one frame without waiting for the glasses. An error is a *Problem: the glasses are gone, or so far
	// behind that the frame was dropped.
	Send(frame []byte, binary bool) error
	// Receive waits for the next frame. The error is that of ctx, or a *Problem once the glasses are detached permanently
	// and everything they sent has been received.
	Receive(ctx context.Context) (frame []byte, binary bool, err error)
	// Close detaches the glasses and waits until all their goroutines have stopped. It may be called more than once.
	Close() error
}
