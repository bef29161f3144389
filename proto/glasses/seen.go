package glasses

import "hash/maphash"

// FrameKey names a frame as a log's uniqueness does: by sender, id and kind. A result counts once, whoever sends it.
type FrameKey struct{ sender, id, kind string }

// KeyOf is the key of a frame or row.
func KeyOf(sender, id, kind string) FrameKey {
	if kind == KindResult {
		sender = ""
	}
	return FrameKey{sender, id, kind}
}

// Known is what is remembered of a frame: a digest of what it said, and its row where the log's owner told one.
type Known struct {
	Digest uint64
	Seq    int64
}

// Seen remembers the keys of a session's latest frames, so that one that is sent again is acknowledged and not relayed
// twice. It is not safe for concurrent use.
type Seen struct {
	seed  maphash.Seed
	limit int
	of    map[FrameKey]Known
	ring  []FrameKey
	next  int
}

// NewSeen remembers up to limit frames; one that comes again later than that is a new one.
func NewSeen(limit int) *Seen {
	return &Seen{seed: maphash.MakeSeed(), limit: limit, of: map[FrameKey]Known{}}
}

// Sum digests what a frame says. Digests of different Seen cannot be compared.
func (s *Seen) Sum(typ string, payload []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = h.WriteString(typ)
	_ = h.WriteByte(0)
	_, _ = h.Write(payload)
	return h.Sum64()
}

// Find tells what is known of a frame.
func (s *Seen) Find(k FrameKey) (Known, bool) {
	known, ok := s.of[k]
	return known, ok
}

// Add remembers a frame and forgets the oldest beyond the limit. What is known of a frame stays.
func (s *Seen) Add(k FrameKey, known Known) {
	if _, there := s.of[k]; there {
		return
	}
	s.of[k] = known
	if len(s.ring) < s.limit {
		s.ring = append(s.ring, k)
		return
	}
	delete(s.of, s.ring[s.next])
	s.ring[s.next] = k
	s.next = (s.next + 1) % s.limit
}
