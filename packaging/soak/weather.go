//go:build linux

package main

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// ok is the outcome of a call that was answered as if nothing was wrong. Every other outcome is the typed code of an
// error, or "link:" and a state that is not linked.
const ok = "ok"

// weather knows which faults were in force when, and so which outcomes a call may have.
type weather struct {
	mu    sync.Mutex
	spans []span
}

// span is one fault from its beginning to when its consequences must be over.
type span struct {
	fault    *fault
	from, to time.Time // to is zero while the fault is in force
}

// begin puts a fault into force; the function ends it.
func (w *weather) begin(f *fault) (end func()) {
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

// longest is how long a call can take; older faults explain nothing.
const longest = 90 * time.Second

func (w *weather) forget(now time.Time) {
	w.spans = slices.DeleteFunc(w.spans, func(s span) bool { return !s.to.IsZero() && now.Sub(s.to) > longest })
}

// explains tells whether a fault in force at some time since the call began may have the outcome.
func (w *weather) explains(outcome string, since time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.spans {
		if (s.to.IsZero() || s.to.After(since)) && slices.Contains(s.fault.allows, outcome) {
			return true
		}
	}
	return false
}

// names lists the faults that a call since then may feel.
func (w *weather) names(since time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, s := range w.spans {
		if s.to.IsZero() || s.to.After(since) {
			names = append(names, s.fault.name)
		}
	}
	if len(names) == 0 {
		return "no fault"
	}
	return strings.Join(names, ", ")
}
