//go:build linux

package main

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// ok is the outcome of a call without an error. Other outcomes are an error code, or "link:" followed by the state of
// a link.
const ok = "ok"

// activeFaults records when each fault was active, which determines the outcomes that a call may have.
type activeFaults struct {
	mu    sync.Mutex
	spans []span
}

// span is the time from the start of one fault until its consequences must be over.
type span struct {
	fault    *fault
	from, to time.Time // to is zero while the fault is active
}

// begin records the start of a fault. The returned function records its end.
func (w *activeFaults) begin(f *fault) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(time.Now())
	from := time.Now()
	w.spans = append(w.spans, span{fault: f, from: from})
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i := range w.spans {
			if w.spans[i].fault == f && w.spans[i].from.Equal(from) {
				w.spans[i].to = time.Now().Add(f.grace)
			}
		}
	}
}

// longest is the maximum duration of a call. Faults that ended earlier cannot explain its outcome.
const longest = 90 * time.Second

func (w *activeFaults) forget(now time.Time) {
	w.spans = slices.DeleteFunc(w.spans, func(s span) bool { return !s.to.IsZero() && now.Sub(s.to) > longest })
}

// explains reports whether a fault that was active after the call began can cause the outcome.
func (w *activeFaults) explains(outcome string, since time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.spans {
		if (s.to.IsZero() || s.to.After(since)) && slices.Contains(s.fault.allows, outcome) {
			return true
		}
	}
	return false
}

// names returns the faults that can affect a call begun at since.
func (w *activeFaults) names(since time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, s := range w.spans {
		if s.to.IsZero() || s.to.After(since) {
			names = append(names, s.fault.name)
		}
	}
	return cmp.Or(strings.Join(names, ", "), "no fault")
}
