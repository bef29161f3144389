package relay

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/service-dev/service/proto/glasses"
)

// streams counts what is relayed and not logged.
type streams struct {
	mu   sync.Mutex
	each []*streamCount // a handful
}

type streamCount struct {
	glasses.StreamCount
	since time.Time
}

func (s *streams) add(typ string, size int, now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.each, func(c *streamCount) bool { return c.Type == typ })
	if i < 0 {
		i = len(s.each)
		s.each = append(s.each, &streamCount{StreamCount: glasses.StreamCount{Type: typ}, since: now()})
	}
	s.each[i].Frames++
	s.each[i].Bytes += int64(size)
}

func (s *streams) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.each) > 0
}

// take removes the counts that match, in the order of their types.
func (s *streams) take(match func(*streamCount) bool) []glasses.StreamCount {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taken []glasses.StreamCount
	s.each = slices.DeleteFunc(s.each, func(c *streamCount) bool {
		if match(c) {
			taken = append(taken, c.StreamCount)
			return true
		}
		return false
	})
	slices.SortFunc(taken, func(a, b glasses.StreamCount) int { return cmp.Compare(a.Type, b.Type) })
	return taken
}

func (s *streams) due(now time.Time, every time.Duration) []glasses.StreamCount {
	return s.take(func(c *streamCount) bool { return now.Sub(c.since) >= every })
}

func (s *streams) all() []glasses.StreamCount { return s.take(func(*streamCount) bool { return true }) }

// of is the stream that a command stops.
func (s *streams) of(command string) []glasses.StreamCount {
	stream := map[string]string{
		glasses.TypeAudioStop: glasses.TypeAudioChunk, glasses.TypeVideoStop: glasses.TypeVideoFrame, glasses.TypeMotionStop: glasses.TypeMotion,
	}[command]
	if stream == "" {
		return nil
	}
	return s.take(func(c *streamCount) bool { return c.Type == stream })
}

// noteStreams writes the rows of counted streams. mu is held.
func (r *room) noteStreams(ctx context.Context, counts []glasses.StreamCount) {
	for _, c := range counts {
		r.note(ctx, glasses.RowStreamCounted, c)
	}
}

var (
	errAppBinary  = &glasses.Error{Code: glasses.CodeBadFrame, Message: "apps send text frames only"}
	errNotBinary  = &glasses.Error{Code: glasses.CodeBadFrame, Message: "binary frames are media, audio.chunk, video.frame and motion"}
	errOnlyBinary = &glasses.Error{Code: glasses.CodeBadFrame, Message: "media, audio.chunk and video.frame are binary frames"}
	errLooksOn    = &glasses.Error{Code: glasses.CodeBadFrame, Message: "another page plays the glasses; this one only looks on"}
)

// takeBinary handles a binary frame of a page: a piece of a stream, or the media of a result that follows. It needs no
// lock of the room: nothing is logged, and frames of one page stay in order by themselves.
func (r *room) takeBinary(c *conn, sender string, m message) {
	if sender == glasses.SenderApp {
		r.refuse(c, "", errAppBinary)
		return
	}
	typ, body, err := binaryHead(m.data)
	if err == nil && !glasses.IsStream(typ) {
		err = errNotBinary
	}
	if err != nil {
		r.refuse(c, "", err)
		return
	}
	if r.active.Load() != c {
		return // a page that was taken over from may be in the middle of a stream
	}
	m.stream = typ != glasses.TypeMedia
	if m.stream {
		r.streams.add(typ, body, r.h.Now)
	}
	r.stream(c, m)
}

// stream relays a frame of a stream. When an app cannot keep up, the page is held up for a moment before frames are
// dropped.
func (r *room) stream(c *conn, m message) {
	eased := r.h.bus.Publish(r.id, toApps, m)
	if eased == nil {
		return
	}
	select {
	case <-eased:
	case <-time.After(pressedWait):
	case <-c.left:
	}
}
