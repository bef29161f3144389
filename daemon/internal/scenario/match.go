package scenario

import (
	"context"
	"fmt"
	"slices"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
)

// farMs is the maximum distance in ms of two similar frames that are treated as one changed frame. At the same moment,
// they must share a third of their content or have only one piece of content. At different moments, they must share
// more than half. Otherwise one frame is missing and the other is extra.
const farMs = 1000

// matcher pairs the frames of a recording with those of a run.
type matcher struct {
	want, got []frame
	timed     bool // whether both have virtual times
	// before and after are the delays of the nearest equal frames, indexed like want. A frame with the same delay as
	// its neighbours counts as on time.
	before, after []int64
}

// matchFrames aligns the frames of a recording and a run.
func matchFrames(want, got []frame, timed bool) []pair {
	m := &matcher{want: want, got: got, timed: timed}
	if timed {
		m.findDelays()
	}
	return align(len(want), len(got), m.cost)
}

// findDelays aligns only the equal frames and records the delay of each.
func (m *matcher) findDelays() {
	n := len(m.want)
	m.before, m.after = make([]int64, n), make([]int64, n)
	known := make([]bool, n)
	for _, p := range align(n, len(m.got), m.costOfEqual) {
		if p.want >= 0 && p.got >= 0 {
			known[p.want] = true
			m.before[p.want] = m.got[p.got].at - m.want[p.want].at
			m.after[p.want] = m.before[p.want]
		}
	}
	for i := 1; i < n; i++ {
		if !known[i] {
			m.before[i] = m.before[i-1]
		}
	}
	for i := n - 2; i >= 0; i-- {
		if !known[i] {
			m.after[i] = m.after[i+1]
		}
	}
}

// costOfEqual returns the cost of pairing two frames that differ at most in time and picture. Frames at the same time
// have the lowest cost.
func (m *matcher) costOfEqual(i, j int) int {
	w, g := &m.want[i], &m.got[j]
	if w.key != g.key {
		return never
	}
	late := 0
	if m.timed && w.at != g.at {
		late = 1
	}
	if w.picture != g.picture {
		late += 2
	}
	return late
}

func (m *matcher) cost(i, j int) int {
	w, g := &m.want[i], &m.got[j]
	if w.key == g.key {
		return m.costOfEqual(i, j)
	}
	apart := m.apart(i, j)
	if w.typ != g.typ || !alike(w.content, g.content, apart) {
		return never
	}
	cost := changeCost(w.leaves, g.leaves)
	if apart > 0 {
		cost++
	}
	return cost
}

// apart returns the distance of a run's frame from its expected time, in ms of virtual time.
func (m *matcher) apart(i, j int) int64 {
	if !m.timed {
		return 0
	}
	late := m.got[j].at - m.want[i].at
	return min(distance(late, 0), distance(late, m.before[i]), distance(late, m.after[i]))
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// alike reports whether one frame may be a changed version of the other, given the time between them.
func alike(want, got []uint64, apart int64) bool {
	common, most := shared(want, got), max(len(want), len(got))
	if apart == 0 {
		return most <= 1 || 3*common >= most
	}
	return apart <= farMs && 2*common > most
}

// compareFrames compares the frames of the app. Missing or extra frames do not shift the others.
func (x *run) compareFrames(ctx context.Context, want, got []frame) {
	timed := x.virtual && x.s.Recorded.Clock == backend.ClockVirtual
	delay := int64(0)
	for _, p := range matchFrames(want, got, timed) {
		switch {
		case p.got < 0:
			w := want[p.want]
			accepted := x.differ(ctx, Diff{Kind: DiffMissing, Step: x.stepAt(w.at), AtMs: w.at,
				Message: w.typ + " is missing", Want: summaryOf(w)}, w.key, w.picture, nil)
			if !accepted {
				x.merged.add(w, w.at+x.merged.late, false)
			}
		case p.want < 0:
			g := got[p.got]
			why := x.extraWords(got, p.got)
			accepted := x.differ(ctx, Diff{Kind: DiffExtra, Step: x.stepOf(g.seq), AtMs: g.at,
				Message: g.typ + " is extra" + why, Got: summaryOf(g)}, g.key+why, "", g.png)
			if accepted {
				x.merged.add(g, g.at-delay+x.merged.late, false)
			}
		default:
			w, g := want[p.want], got[p.got]
			kept := x.comparePair(ctx, w, g)
			if timed {
				delay = x.compareTimes(ctx, w, g, delay)
			}
			x.merged.add(kept, w.at+x.merged.late, true)
		}
	}
}

// comparePair compares two paired frames, except for their times, and returns the frame to keep in the recording.
func (x *run) comparePair(ctx context.Context, w, g frame) frame {
	if w.key == g.key && w.picture == g.picture {
		return w
	}
	d, same := Diff{Kind: DiffPicture, Message: w.typ + " is drawn differently"}, w.picture+" "+g.picture
	if w.key != g.key {
		d, same = changedFrame(w, g)
	}
	if d.Step, d.AtMs = x.stepOf(g.seq), g.at; x.differ(ctx, d, same, w.picture, g.png) {
		return g
	}
	return w
}

// compareTimes compares the times of two paired frames and returns the run's current delay. It reports a lasting delay
// once instead of once per later frame. The end of a delay is not a difference.
func (x *run) compareTimes(ctx context.Context, w, g frame, delay int64) int64 {
	now := g.at - w.at
	if now == 0 {
		x.merged.late = 0
	}
	if now == delay || now == 0 {
		return now
	}
	d := Diff{Kind: DiffTime, Step: x.stepOf(g.seq), AtMs: g.at, Message: w.typ + " arrived at another time",
		Want: fmt.Sprint(w.at), Got: fmt.Sprint(g.at)}
	if x.differ(ctx, d, "", "", nil) {
		x.merged.late += now - delay
	}
	return now
}

// extraWords describes an extra display command that equals the next one: what preceded it and whether it changed the
// panel. This helps to fix an app that shows content twice. For other frames it returns "".
func (x *run) extraWords(got []frame, i int) string {
	g := got[i]
	next := slices.IndexFunc(got[i+1:], func(f frame) bool { return isDisplay(f.typ) })
	if !isDisplay(g.typ) || next < 0 || got[i+1+next].key != g.key {
		return ""
	}
	words := ": the same as the next frame"
	for _, row := range slices.Backward(x.rows) {
		if row.Seq < g.seq && row.Kind != glasses.KindResult && row.Sender != glasses.SenderService {
			words += ", after " + row.Type
			break
		}
	}
	if g.picture == "" {
		return words
	}
	for _, f := range slices.Backward(got[:i]) {
		if f.picture == g.picture {
			return words + "; the panel did not change"
		}
		if f.picture != "" {
			break
		}
	}
	return words + "; the panel changed"
}
