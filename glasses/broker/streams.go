package broker

import (
	"cmp"
	"slices"
	"time"

	"github.com/service-dev/service/glasses"
)

// StreamCounter counts the frames of streams, which are relayed but not logged. It is not safe for concurrent use.
type StreamCounter struct {
	every  time.Duration
	counts []streamCount // has only a few elements
}

type streamCount struct {
	glasses.StreamCount
	due time.Time
}

// NewStreamCounter returns a counter whose counts become due after the interval every.
func NewStreamCounter(every time.Duration) StreamCounter { return StreamCounter{every: every} }

// Add counts a frame.
func (s *StreamCounter) Add(now time.Time, typ string, size int) {
	i := slices.IndexFunc(s.counts, func(c streamCount) bool { return c.Type == typ })
	if i < 0 {
		i = len(s.counts)
		s.counts = append(s.counts, streamCount{StreamCount: glasses.StreamCount{Type: typ}, due: now.Add(s.every)})
	}
	s.counts[i].Frames++
	s.counts[i].Bytes += int64(size)
}

// IsRunning reports whether there are counts that have not been taken yet.
func (s *StreamCounter) IsRunning() bool { return len(s.counts) > 0 }

// NextDue returns when the next count is due. ok is false if there are no counts.
func (s *StreamCounter) NextDue() (due time.Time, ok bool) {
	if len(s.counts) == 0 {
		return due, false
	}
	return slices.MinFunc(s.counts, func(a, b streamCount) int { return a.due.Compare(b.due) }).due, true
}

// TakeDue returns and resets the counts that are due, ordered by type.
func (s *StreamCounter) TakeDue(now time.Time) []glasses.StreamCount {
	return s.take(func(c streamCount) bool { return !c.due.After(now) })
}

// TakeAll returns and resets all counts, ordered by type.
func (s *StreamCounter) TakeAll() []glasses.StreamCount {
	return s.take(func(streamCount) bool { return true })
}

// TakeStopped returns and resets the count of the stream that the command stops.
func (s *StreamCounter) TakeStopped(command string) []glasses.StreamCount {
	stream := ""
	switch command {
	case glasses.TypeAudioStop:
		stream = glasses.TypeAudioChunk
	case glasses.TypeVideoStop:
		stream = glasses.TypeVideoFrame
	case glasses.TypePlaybackEnd, glasses.TypePlaybackFlush:
		stream = glasses.TypePlaybackChunk
	case glasses.TypeMotionStop:
		stream = glasses.TypeMotion
	default:
		return nil
	}
	return s.take(func(c streamCount) bool { return c.Type == stream })
}

func (s *StreamCounter) take(match func(streamCount) bool) (taken []glasses.StreamCount) {
	s.counts = slices.DeleteFunc(s.counts, func(c streamCount) bool {
		if match(c) {
			taken = append(taken, c.StreamCount)
			return true
		}
		return false
	})
	slices.SortFunc(taken, func(a, b glasses.StreamCount) int { return cmp.Compare(a.Type, b.Type) })
	return taken
}
