package session

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/service-dev/service/proto/glasses"
)

// heardBytes handles a binary frame of the glasses: a chunk of a stream, or the media of the result that follows.
func (r *room) heardBytes(data []byte) {
	f, body, err := glasses.ParseBinary(data)
	if err != nil || !glasses.IsStream(f.Type) {
		r.l.often.Warn("a binary frame of the glasses", "session", r.id, "type", f.Type, "err", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passes(f.At)
	if f.Type == glasses.TypeMedia {
		r.keepMedia(f, body)
	} else {
		r.count(f.Type, len(body))
	}
	r.spread(data, true, f.Type != glasses.TypeMedia)
}

// count adds a frame to its stream's count. mu is held.
func (r *room) count(typ string, size int) {
	c := r.counts[typ]
	if c == nil {
		c = &count{StreamCount: glasses.StreamCount{Type: typ}, due: r.clock() + countEvery}
		r.counts[typ] = c
	}
	c.Frames++
	c.Bytes += int64(size)
}

// streamOf is the stream that a command stops.
func streamOf(typ string) string {
	switch typ {
	case glasses.TypeAudioStop:
		return glasses.TypeAudioChunk
	case glasses.TypeVideoStop:
		return glasses.TypeVideoFrame
	case glasses.TypeMotionStop:
		return glasses.TypeMotion
	}
	return ""
}

// stopped writes the count of a stream that a command has stopped. mu is held.
func (r *room) stopped(command string) { r.counted(streamOf(command)) }

func (r *room) counted(stream string) {
	if c := r.counts[stream]; c != nil {
		delete(r.counts, stream)
		r.note(glasses.RowStreamCounted, c.StreamCount)
	}
}

func (r *room) countAll() {
	for _, stream := range slices.Sorted(maps.Keys(r.counts)) {
		r.counted(stream)
	}
}

// due is the next instant at which this side has something to do, on the session's clock. mu is held.
func (r *room) due() (at int64, ok bool) {
	for _, c := range r.pending {
		if !ok || c.due < at {
			at, ok = c.due, true
		}
	}
	for _, c := range r.counts {
		if !ok || c.due < at {
			at, ok = c.due, true
		}
	}
	return at, ok
}

// expire does what is due. mu is held.
func (r *room) expire() {
	now := r.clock()
	for _, stream := range slices.Sorted(maps.Keys(r.counts)) {
		if r.counts[stream].due <= now {
			r.counted(stream)
		}
	}
	for _, id := range r.waiting(now) {
		r.answer(id, glasses.CodeTimeout, "the glasses did not answer in time")
	}
}

// waiting lists the commands that are due up to an instant, in that order. mu is held.
func (r *room) waiting(upTo int64) []string {
	var ids []string
	for id, c := range r.pending {
		if c.due <= upTo {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.pending[a].due, r.pending[b].due), cmp.Compare(a, b))
	})
	return ids
}

// keepHouse does in real time what a session must do by itself, until ctx ends.
func (r *room) keepHouse(ctx context.Context) {
	tick := time.NewTicker(house)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !r.virtual() {
			r.mu.Lock()
			r.expire()
			r.mu.Unlock()
		}
		_ = r.save() // it has logged why not
	}
}
