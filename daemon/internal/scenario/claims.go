package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
)

// Limits of the journal. Older entries are dropped, and a recording reports that.
const (
	maxJournals  = 64      // sessions
	maxNotes     = 2000    // per session
	maxNoteBytes = 1 << 20 // per session, as JSON
)

// note is a step that adds no row to the event log, or the user's note about a step that does.
type note struct {
	after int64 // the last row before the step
	at    int64 // time on the session's clock
	row   int64 // the row that the claim waited for; 0 if it did not wait
	step  scenario.Step
	label *label // the user's note about a step; step is then empty
	// omitted describes what a recording omits; step is then empty.
	omitted string
	words   []byte // the WebVTT file of a step microphone

	bytes int // its size within the journal
}

// label is the user's note about a step that a recording derives from rows or from elapsed time.
type label struct{ act, text string }

// journal records actions on sessions that add no row to the event log: head movements, what the microphone hears, and
// met expectations. A recording keeps the expectations as claims. The zero value is empty.
type journal struct {
	mu       sync.Mutex
	sessions map[string]*notes
	order    []string // session IDs, oldest first
}

// notes holds a session's most recent notes, within maxNotes and maxNoteBytes.
type notes struct {
	list  []note
	bytes int
	lost  int64 // the after field of the last dropped note; -1 if none was dropped
}

func (j *journal) add(session string, n note) {
	raw, err := json.Marshal(n.step)
	if err != nil {
		return // a step that ran can always be encoded
	}
	n.bytes = len(raw) + len(n.omitted) + len(n.words)
	if n.label != nil {
		n.bytes += len(n.label.text)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.sessions == nil {
		j.sessions = map[string]*notes{}
	}
	of := j.sessions[session]
	if of == nil {
		if len(j.order) == maxJournals {
			delete(j.sessions, j.order[0])
			j.order = j.order[1:]
		}
		j.order = append(j.order, session)
		of = &notes{lost: -1}
		j.sessions[session] = of
	}
	of.list = append(of.list, n)
	of.bytes += n.bytes
	for len(of.list) > maxNotes || of.bytes > maxNoteBytes {
		of.lost = max(of.lost, of.list[0].after)
		of.bytes -= of.list[0].bytes
		of.list = of.list[1:]
	}
}

// of returns a session's notes since the row from, in order. whole is false if some of them were dropped.
func (j *journal) of(session string, from int64) (list []note, whole bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	of := j.sessions[session]
	if of == nil {
		return nil, true
	}
	for _, n := range of.list {
		if n.after >= from {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b note) int { return cmp.Compare(a.after, b.after) })
	return list, of.lost < from
}

// claim records a step that passed, as the tools do for their own calls. began is the time on the session's clock
// before the step. It does not record the absence of a row, because the recording's frames show it.
func (x *run) claim(ctx context.Context, step *scenario.Step, began int64) {
	claim := scenario.Step{Note: step.Note, Motion: step.Motion, ExpectNothingClipped: step.ExpectNothingClipped,
		Picture: step.Picture}
	var row glasses.Event
	switch {
	case step.ExpectDisplay != nil:
		held := *step.ExpectDisplay
		held.WithinMs = nil
		claim.ExpectDisplay = &held
	case step.Expect != nil && step.Expect.Absent:
		x.remember(note{omitted: "an expectation that something does not come, because the frames show that"})
		return
	case step.Expect != nil && x.taken.Sender == glasses.SenderService:
		x.remember(note{omitted: "an expectation of a row from the service, which no app can repeat"})
		return
	case step.Expect != nil:
		held := *step.Expect
		held.WithinMs, row = nil, x.taken
		claim.Expect = &held
	case step.Microphone != nil:
		x.r.NoteSound(ctx, x.req.Target, x.req.SessionID, x.heard)
		return
	case claim.Motion == nil && claim.ExpectNothingClipped == nil && claim.Picture == nil:
		if step.Note != "" {
			x.remember(note{at: began, label: &label{step.Act(), step.Note}})
		}
		return
	}
	x.r.Note(ctx, x.req.Target, x.req.SessionID, claim, row.Seq, row.At)
}

// remember adds a note about a step in this run to the journal.
func (x *run) remember(n note) {
	n.after = x.next
	x.r.journal.add(x.req.SessionID, n)
}

// Note records a met expectation or a head movement in a session, for a later recording. row is the row that the
// expectation waited for, and at is its time. Both are 0 for a condition that holds now or an action that happens now.
// If the session cannot be read, Note does nothing, because the action matters more than its recording.
func (r *Runner) Note(ctx context.Context, target backend.Target, id string, step scenario.Step, row, at int64) {
	if e := step.ExpectDisplay; e != nil && e.Picture != "" {
		claim := *e
		claim.Picture = "" // the recording has its own pictures, which can be accepted
		if len(claim.Text)+len(claim.Absent)+len(claim.Images) == 0 && claim.Focus == nil {
			return
		}
		step.ExpectDisplay = &claim
	}
	if row > 0 {
		r.journal.add(id, note{after: row, at: at, row: row, step: step})
		return
	}
	r.noteNow(ctx, target, id, note{step: step})
}

// NoteSound records that the microphone of a session hears a file from now on, for a later recording. file is nil if it
// hears its own sound again. The recording contains the file if it is a WebVTT file.
func (r *Runner) NoteSound(ctx context.Context, target backend.Target, id string, file []byte) {
	n := note{omitted: "a sound of the microphone, because a recording contains only the words of a WebVTT file"}
	switch {
	case len(file) == 0:
		n = note{step: scenario.Step{Microphone: new(string)}}
	case session.IsWebVTT(file):
		path := mediaFolder + "/" + sum(file) + ".vtt"
		n = note{step: scenario.Step{Microphone: &path}, words: file}
	}
	r.noteNow(ctx, target, id, n)
}

// noteNow records a note about an action that happens now.
func (r *Runner) noteNow(ctx context.Context, target backend.Target, id string, n note) {
	s, err := r.sessions.Get(ctx, target, id)
	if err != nil {
		return
	}
	n.after, n.at = s.LastSeq, s.NowMs
	r.journal.add(id, n)
}
