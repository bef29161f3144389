package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/scenario"
)

// Bounds of the journal. What is older is forgotten, and then is not part of a recording.
const (
	maxJournals = 64   // sessions
	maxNotes    = 2000 // of a session
)

// note is a step that leaves no row in the event log, or rows that do not tell what caused them.
type note struct {
	after int64 // the last row before it
	until int64 // the last row that it caused; 0 for a claim
	at    int64 // on the session's clock
	row   int64 // the row that a claim waited for; 0 for none
	step  scenario.Step
}

// covers reports whether a row was caused by an injection.
func (n note) covers(e glasses.Event) bool {
	if e.Sender != glasses.SenderGlasses || e.Seq <= n.after || e.Seq > n.until {
		return false
	}
	return n.step.State != nil && stateRank(e) > 0 || n.step.Input != nil && e.Type == glasses.TypeInput
}

// placed returns the notes in the order of their steps. What an app did before it came to rest for an injection was
// logged after the injection began: its place is just before the first row that it caused, or else after all rows. A
// claim about a row comes before an injection after that row.
func placed(rows []glasses.Event, noted []note) []note {
	list := slices.Clone(noted)
	for i, n := range list {
		if n.until == 0 {
			continue
		}
		list[i].after = n.until
		from, _ := slices.BinarySearchFunc(rows, n.after+1, func(e glasses.Event, seq int64) int {
			return cmp.Compare(e.Seq, seq)
		})
		for _, e := range rows[from:] {
			if covered := n.covers(e); covered || e.Seq > n.until {
				if covered {
					list[i].after = e.Seq - 1
				}
				break
			}
		}
	}
	isRow := func(n note) int { return min(int(n.row), 1) }
	slices.SortStableFunc(list, func(a, b note) int {
		return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(isRow(b), isRow(a)))
	})
	return list
}

// journal keeps what a recording needs and the logs of sessions do not tell: the expectations that held, which it keeps
// as claims, and injections. The zero value is empty.
type journal struct {
	mu       sync.Mutex
	sessions map[string][]note
	order    []string // of the sessions, the oldest first
}

func (j *journal) add(session string, n note) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.sessions == nil {
		j.sessions = map[string][]note{}
	}
	if _, ok := j.sessions[session]; !ok {
		if len(j.order) == maxJournals {
			delete(j.sessions, j.order[0])
			j.order = j.order[1:]
		}
		j.order = append(j.order, session)
	}
	list := slices.Concat(j.sessions[session], []note{n})
	j.sessions[session] = list[max(0, len(list)-maxNotes):]
}

// of returns the notes from a row on, in order.
func (j *journal) of(session string, from int64) (list []note) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, n := range j.sessions[session] {
		if n.after >= from {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b note) int { return cmp.Compare(a.after, b.after) })
	return list
}

// Note remembers an expectation that held in a session for a later recording. row is the
// row of the log that an expectation waited for, with its time at; both are 0 for what holds now. A session
// that cannot be read is not noted, as what was done counts more than the recording of it.
func (r *Runner) Note(ctx context.Context, target backend.Target, id string, step scenario.Step, row, at int64) {
	if e := step.ExpectDisplay; e != nil && e.Picture != "" {
		claim := *e
		claim.Picture = "" // the recording's own pictures say that, and can be accepted
		if len(claim.Text)+len(claim.Absent)+len(claim.Images) == 0 && claim.Focus == nil {
			return
		}
		step.ExpectDisplay = &claim
	}
	n := note{after: row, at: at, row: row, step: step}
	if row == 0 {
		s, err := r.sessions.Get(ctx, target, id)
		if err != nil {
			return
		}
		n.after, n.at = s.LastSeq, s.NowMs
	}
	r.journal.add(id, n)
}

// NoteInjection remembers what was done to the glasses of a session, which the rows that it caused do not tell: nothing
// is logged of a movement of the head, and states or inputs of one injection are a row each. before is the last row
// before it; the result is the last one now, or before if the session cannot be read.
func (r *Runner) NoteInjection(ctx context.Context, target backend.Target, id, typ string, payload any,
	before int64) int64 {
	step, ok := injected(typ, payload)
	if !ok {
		return before
	}
	s, err := r.sessions.Get(ctx, target, id)
	if err != nil {
		return before
	}
	r.journal.add(id, note{after: before, until: s.LastSeq, at: s.NowMs, step: step})
	return s.LastSeq
}

// injected returns the step of a control frame whose rows do not say what it was.
func injected(typ string, payload any) (s scenario.Step, ok bool) {
	raw, err := json.Marshal(payload)
	if err != nil {
		return s, false
	}
	parsed, err := glasses.ParseControl(typ, raw)
	if err != nil {
		return s, false
	}
	switch p := parsed.(type) {
	case *glasses.Motion:
		s.Motion = p
		return s, true
	case *glasses.StatePatch:
		s.State = p
		return s, string(raw) != "{}" // which only reads
	case *glasses.Input:
		s.Input = p
		return s, p.ByTarget()
	}
	return s, false
}

// noteStep remembers for a recording what a step of a run did or found.
func (x *run) noteStep(ctx context.Context, s *scenario.Step) {
	row, at := int64(0), int64(0)
	switch {
	case s.Expect != nil && !s.Expect.Absent:
		if x.taken.Sender == glasses.SenderService {
			return // not the app's to repeat
		}
		row, at = x.taken.Seq, x.taken.At
	case s.Expect == nil && s.ExpectDisplay == nil && s.ExpectNothingClipped == nil:
		return
	}
	x.r.Note(ctx, x.req.Target, x.req.SessionID, *s, row, at)
}
