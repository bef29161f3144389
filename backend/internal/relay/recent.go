package relay

import (
	"hash/maphash"

	"github.com/service-dev/service/proto/glasses"
)

// maxRecent is how many ids a room remembers without asking the log.
const maxRecent = 512

// frameKey names a frame as the log's uniqueness does; a result counts once whoever sends it.
type frameKey struct{ sender, id, kind string }

func keyOf(sender, id, kind string) frameKey {
	if kind == glasses.KindResult {
		sender = ""
	}
	return frameKey{sender, id, kind}
}

// recent remembers the ids of the latest frames with a digest of what they said.
type recent struct {
	seed   maphash.Seed
	digest map[frameKey]uint64
	ring   []frameKey
	next   int
}

func newRecent() *recent {
	return &recent{seed: maphash.MakeSeed(), digest: map[frameKey]uint64{}}
}

func (r *recent) sum(typ string, payload []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	_, _ = h.WriteString(typ)
	_ = h.WriteByte(0)
	_, _ = h.Write(payload)
	return h.Sum64()
}

func (r *recent) find(k frameKey) (digest uint64, ok bool) {
	digest, ok = r.digest[k]
	return digest, ok
}

func (r *recent) add(k frameKey, digest uint64) {
	if _, known := r.digest[k]; known {
		return
	}
	r.digest[k] = digest
	if len(r.ring) < maxRecent {
		r.ring = append(r.ring, k)
		return
	}
	delete(r.digest, r.ring[r.next])
	r.ring[r.next] = k
	r.next = (r.next + 1) % maxRecent
}
