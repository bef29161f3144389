package broker

import (
	"hash/maphash"

	"github.com/service-dev/service/glasses"
)

// frameKey identifies a frame by the fields that are unique in the log.
type frameKey struct{ sender, id, kind string }

// keyOf returns a frame's key. Results with the same ID have the same key, regardless of the peer that sends them.
func keyOf(sender, id, kind string) frameKey {
	if kind == glasses.KindResult {
		sender = ""
	}
	return frameKey{sender, id, kind}
}

// sentFrame is the record of a sent frame. It contains a digest of the frame's content, which is 0 for frames from the
// service, and the seq of its row if the host has reported one.
type sentFrame struct {
	digest uint64
	seq    int64
}

// recentFrames remembers a session's latest frames in a ring.
type recentFrames struct {
	seed  maphash.Seed
	limit int
	known map[frameKey]sentFrame // nil until there is one
	ring  []frameKey
	next  int
}

func newRecentFrames(limit int) recentFrames {
	return recentFrames{seed: maphash.MakeSeed(), limit: limit}
}

// digest returns a hash of a frame's content. Only hashes of the same recentFrames are comparable.
func (r *recentFrames) digest(typ string, payload []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	_, _ = h.WriteString(typ)
	_ = h.WriteByte(0)
	_, _ = h.Write(payload)
	return h.Sum64()
}

func (r *recentFrames) find(k frameKey) (sentFrame, bool) {
	known, ok := r.known[k]
	return known, ok
}

// add records a frame unless it is known. It removes the oldest frame if there are too many.
func (r *recentFrames) add(k frameKey, frame sentFrame) {
	if _, known := r.known[k]; known {
		return
	}
	if r.known == nil {
		r.known = map[frameKey]sentFrame{}
	}
	r.known[k] = frame
	if len(r.ring) < r.limit {
		r.ring = append(r.ring, k)
		return
	}
	delete(r.known, r.ring[r.next])
	r.ring[r.next] = k
	r.next = (r.next + 1) % r.limit
}
