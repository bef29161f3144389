package scenario

import (
	"encoding/json"
	"hash/maphash"
	"slices"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
)

// frame is a command or event of the app. For a successful display command, it includes the resulting panel.
type frame struct {
	at      int64
	seq     int64 // row number; 0 in a recording
	typ     string
	raw     json.RawMessage
	payload any
	key     string   // equal for frames with equal content
	leaves  []uint64 // hashes of the payload's values, to measure the similarity of two frames
	content []uint64 // hashes of the visible part, or of the whole payload if it has no tree
	picture string   // SHA-256 of the panel as PNG; empty if there is none
	drawn   int64    // when the panel showed it
	png     func() []byte
}

func newFrame(at int64, typ string, raw []byte) frame {
	whole := raw
	if typ == glasses.TypeClockCancel {
		raw = []byte("{}") // the payload contains a sleep's ID, and IDs differ between runs
	}
	payload, ok := decoded(raw)
	f := frame{at: at, typ: typ, raw: whole, payload: payload, key: typ + " " + canonical(payload),
		leaves: leavesOf(payload)}
	if !ok {
		f.key = typ + " " + string(raw)
	}
	f.content = f.leaves
	if object, ok := payload.(map[string]any); ok && isNode(object["tree"]) {
		f.content = contentOf(object["tree"])
	}
	return f
}

func isDisplay(typ string) bool {
	return typ == glasses.TypeDisplayShow || typ == glasses.TypeDisplayClear
}

// recordedFrames returns the frames of a recording. A recording lists the pictures of successful display commands, but
// not which commands succeeded. If some failed, matched is false and no frame has a picture.
func recordedFrames(rec *scenario.Recorded) (list []frame, matched bool) {
	shown := []int{}
	for i, r := range rec.Trace {
		list = append(list, newFrame(r.At, r.Type, r.Payload))
		if isDisplay(r.Type) {
			shown = append(shown, i)
		}
	}
	if len(shown) != len(rec.Pictures) {
		return list, false
	}
	for i, at := range shown {
		list[at].picture, list[at].drawn = rec.Pictures[i].SHA256, rec.Pictures[i].At
	}
	return list, true
}

// framesOf returns the frames of a log.
func framesOf(rows []glasses.Event, base int64, shown []panel) (list []frame) {
	of := map[int64]panel{}
	for _, p := range shown {
		of[p.request] = p
	}
	for _, e := range rows {
		if e.Sender != glasses.SenderApp {
			continue
		}
		f := newFrame(e.At-base, e.Type, e.Payload)
		f.seq = e.Seq
		if p, ok := of[e.Seq]; ok {
			f.png, f.drawn = p.png, p.at
			f.picture = sum(p.png())
		}
		list = append(list, f)
	}
	return list
}

// changeCost returns the cost of treating one frame as a changed version of the other. It decreases with the number of
// shared leaves.
func changeCost(want, got []uint64) int {
	const least, spread = 40, 100
	most := max(len(want), len(got), 1)
	return least + spread*(most-shared(want, got))/most
}

// shared returns the number of entries that two sorted lists have in common.
func shared(a, b []uint64) (count int) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			count++
			a, b = a[1:], b[1:]
		}
	}
	return count
}

var leafSeed = maphash.MakeSeed()

// leavesOf returns sorted hashes of the fields and values in a payload. The hashes do not depend on positions, so that
// an additional list entry changes few of them.
func leavesOf(v any) []uint64 { return leavesWhere(v, func(string) bool { return true }) }

// contentOf returns hashes of the content that a tree shows to the wearer. It ignores types, styles and sizes, which
// most trees of an app share.
func contentOf(tree any) []uint64 {
	told := []string{"text", "alt", "icon", "data", "value"}
	return leavesWhere(tree, func(field string) bool { return slices.Contains(told, field) })
}

// leavesWhere returns hashes of the fields for which counts returns true, and of their values.
func leavesWhere(v any, counts func(field string) bool) []uint64 {
	var list []uint64
	var collect func(name string, v any)
	collect = func(name string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for field, inner := range v {
				collect(field, inner)
			}
		case []any:
			for _, inner := range v {
				collect(name, inner)
			}
		default:
			if counts(name) {
				list = append(list, maphash.String(leafSeed, name+"="+canonical(v)))
			}
		}
	}
	collect("", v)
	slices.Sort(list)
	return list
}

func leavesOfAll(values []any) (list [][]uint64) {
	for _, v := range values {
		list = append(list, leavesOf(v))
	}
	return list
}
