package broker

// Bounds limits the frames queued for one peer. Stream frames have a separate limit, because they may be lost and other
// frames may not.
type Bounds struct {
	Frames       int // number of frames that must not be lost
	Bytes        int // total size of all frames
	StreamFrames int
	StreamBytes  int
}

// Delivery is the outcome of queueing a frame for a peer.
type Delivery int

// Values of Delivery.
const (
	Queued   Delivery = iota
	Dropped           // a stream frame was dropped because the peer is behind
	Overflow          // the peer is too far behind: close its connection, and it attaches again with its cursor
)

// Parcel is a frame queued for a peer.
type Parcel interface {
	Size() int // bytes
	// IsStream reports whether the frame may be dropped.
	IsStream() bool
}

// Outbox holds the frames that one peer has not received, whether queued or being written. It is not safe for
// concurrent use.
type Outbox[P Parcel] struct {
	bounds        *Bounds
	queue         []P
	frames, bytes int // number of frames that are not stream frames; bytes of all frames
	streamFrames  int
	streamBytes   int
}

// NewOutbox returns an empty outbox. Several outboxes may share bounds, which must not change.
func NewOutbox[P Parcel](bounds *Bounds) Outbox[P] { return Outbox[P]{bounds: bounds} }

// Put queues a frame if the bounds allow it. An empty outbox accepts a frame of any size.
func (o *Outbox[P]) Put(p P) Delivery {
	size := p.Size()
	isFull := o.bytes > 0 && o.bytes+size > o.bounds.Bytes
	if p.IsStream() {
		if isFull || o.streamFrames >= o.bounds.StreamFrames ||
			o.streamFrames > 0 && o.streamBytes+size > o.bounds.StreamBytes {
			return Dropped
		}
	} else if isFull || o.frames >= o.bounds.Frames {
		return Overflow
	}
	o.queue = append(o.queue, p)
	o.account(p, 1)
	return Queued
}

// Take removes and returns the queued frames. Each counts towards the bounds until Written is
// called for it.
func (o *Outbox[P]) Take() []P {
	batch := o.queue
	o.queue = nil
	return batch
}

// Len returns the number of frames that have not been taken.
func (o *Outbox[P]) Len() int { return len(o.queue) }

// Written records that a taken frame has been written.
func (o *Outbox[P]) Written(p P) { o.account(p, -1) }

func (o *Outbox[P]) account(p P, sign int) {
	o.bytes += sign * p.Size()
	if p.IsStream() {
		o.streamFrames += sign
		o.streamBytes += sign * p.Size()
		return
	}
	o.frames += sign
}

// IsPressed reports whether so many stream frames are queued that their sender should pause.
func (o *Outbox[P]) IsPressed() bool { return o.streamsExceed(4) }

// IsRelieved reports whether a paused sender may continue.
func (o *Outbox[P]) IsRelieved() bool { return !o.streamsExceed(8) }

// streamsExceed reports whether the queued stream frames exceed their bounds divided by divisor.
func (o *Outbox[P]) streamsExceed(divisor int) bool {
	return o.streamFrames > o.bounds.StreamFrames/divisor || o.streamBytes > o.bounds.StreamBytes/divisor
}
