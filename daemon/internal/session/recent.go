package session

import (
	"hash/maphash"

	"github.com/service-dev/service/proto/glasses"
)

// maxRecent is how many ids a session remembers; a frame that is sent again later than that is a new one.
const maxRecent = 8192

// frameKey names a frame as the log's uniqueness does; a result counts once whoever sends it.
type frameKey struct{ sender, id, kind string }

func keyOf(sender, id, kind string) frameKey {
	if kind == glasses.KindResult {
		sender = ""
	}
	return frameKey{sender, id, kind}
}

// known is what is remembered of a frame: a digest of what it said, and its row.
type known struct {
	digest uint64
	seq    int64
}

// recent remembers the ids of the latest frames.
type recent struct {
	seed maphash.Seed
	of   map[frameKey]known
	ring []frameKey
	next int
}

func newRecent() *recent {
	return &recent{seed: maphash.MakeSeed(), of: map[frameKey]known{}}
}

func (r *recent) sum(typ string, payload []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	_, _ = h.WriteString(typ)
	_ = h.WriteByte(0)
	_, _ = h.Write(payload)
	return h.Sum64()
}

func (r *recent) add(k frameKey, digest uint64, seq int64) {
	if _, there := r.of[k]; there {
		return
	}
	r.of[k] = known{digest, seq}
	if len(r.ring) < maxRecent {
		r.ring = append(r.ring, k)
		return
	}
	delete(r.of, r.ring[r.next])
	r.ring[r.next] = k
	r.next = (r.next + 1) % maxRecent
}
