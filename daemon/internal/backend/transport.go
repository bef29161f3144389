package backend

import (
	"context"

	"github.com/service-dev/service/proto/glasses"
)

// TransportOpen asks a transport for the glasses of one session.
type TransportOpen struct {
	SessionID   string
	DeviceModel string
	// Virtual time moves by sim.advance alone, from NowMs on; real time is the machine's own.
	Virtual bool
	NowMs   int64 // the session's clock, in ms
	// Snapshot is what the glasses remember; nil for fresh ones.
	Snapshot *glasses.Snapshot
	// FixturesDir is an absolute folder with pictures and sounds; empty for the simulator's own.
	FixturesDir string
}

// Glasses is an attached pair. Send and Receive may each be used by one goroutine at a time, Close by any.
type Glasses interface {
	// Send hands over one frame. It does not wait for the glasses; an error is a *Problem: they are gone, or so far
	// behind that the frame was dropped.
	Send(frame []byte, binary bool) error
	// Receive waits for the next frame. The error is ctx's, or a *Problem once the glasses are gone for good and all that
	// they had said was received.
	Receive(ctx context.Context) (frame []byte, binary bool, err error)
	// Close takes the glasses away and waits until nothing of them runs. Closing twice is harmless.
	Close() error
}
