package scenario

import (
	"cmp"
	"maps"
	"slices"

	"github.com/service-dev/service/glasses/scenario"
)

// merger builds a recording that takes the differences in some steps from a run and keeps everything else.
type merger struct {
	steps []int // steps whose differences are accepted

	frames   []mergedFrame
	pictures []mergedPicture // pictures of a recording that cannot be assigned to frames
	late     int64           // by how much the accepted delays shift later frames, in ms

	taken map[int]bool   // steps in which a difference was accepted
	kinds map[string]int // number of accepted differences, by kind
	left  map[int]bool   // other steps that differ
}

// mergedFrame is a frame from the recording or from the run.
type mergedFrame struct {
	frame
	to     int64 // its time in the recording
	paired bool
}

// mergedPicture is a picture from the recording, or a new one.
type mergedPicture struct {
	scenario.Picture
	png func() []byte // nil for a picture from the recording
}

// takes reports whether a difference is accepted, and counts it.
func (m *merger) takes(d Diff) bool {
	if m.taken == nil {
		m.taken, m.kinds, m.left = map[int]bool{}, map[string]int{}, map[int]bool{}
	}
	if !slices.Contains(m.steps, d.Step) {
		m.left[d.Step] = true
		return false
	}
	m.taken[d.Step] = true
	m.kinds[d.Kind]++
	return true
}

// add appends a frame at its time in the recording. paired reports whether both the recording and the run have the
// frame.
func (m *merger) add(f frame, at int64, paired bool) {
	m.frames = append(m.frames, mergedFrame{frame: f, to: at, paired: paired})
}

func (m *merger) addPicture(p scenario.Picture, png func() []byte) {
	m.pictures = append(m.pictures, mergedPicture{p, png})
}

// recording returns the frames in the form of a recording, and the pictures. Frames between two paired ones may come
// from the recording and the run, and are ordered by time. A frame that is missing from the run is never placed after
// the next paired frame, which may now be earlier.
func (m *merger) recording() (trace []scenario.Request, pictures []mergedPicture) {
	from := 0
	for i := range len(m.frames) + 1 {
		if i == len(m.frames) || m.frames[i].paired {
			slices.SortStableFunc(m.frames[from:i], func(a, b mergedFrame) int { return cmp.Compare(a.to, b.to) })
			from = i + 1
		}
	}
	for i := len(m.frames) - 2; i >= 0; i-- {
		m.frames[i].to = min(m.frames[i].to, m.frames[i+1].to)
	}
	trace = []scenario.Request{}
	for _, f := range m.frames {
		trace = append(trace, scenario.Request{At: f.to, Type: f.typ, Payload: f.raw})
		if f.picture != "" {
			pictures = append(pictures, mergedPicture{scenario.Picture{At: f.drawn - f.at + f.to, SHA256: f.picture}, f.png})
		}
	}
	return trace, append(pictures, m.pictures...)
}

// maxSteps is the maximum number of steps listed in a report.
const maxSteps = 100

// first returns the lowest maxSteps step numbers in a set, in order.
func first(steps map[int]bool) []int {
	list := slices.Sorted(maps.Keys(steps))
	return list[:min(len(list), maxSteps)]
}
