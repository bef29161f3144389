package device

import "slices"

// queue holds timers in time order. Timers with the same time keep the order in which they were added.
type queue struct{ timers []timer }

type timer struct {
	at int64
	// owner identifies the timers to cancel. It is nil for a timer that is never cancelled.
	owner any
	run   func()
}

func (q *queue) add(at int64, owner any, run func()) {
	i := len(q.timers)
	for i > 0 && q.timers[i-1].at > at {
		i--
	}
	q.timers = slices.Insert(q.timers, i, timer{at, owner, run})
}

func (q *queue) next() (at int64, ok bool) {
	if len(q.timers) == 0 {
		return 0, false
	}
	return q.timers[0].at, true
}

func (q *queue) pop() timer {
	t := q.timers[0]
	q.timers = slices.Delete(q.timers, 0, 1)
	return t
}

// cancel removes all timers of owner, which must be a pointer.
func (q *queue) cancel(owner any) {
	q.timers = slices.DeleteFunc(q.timers, func(t timer) bool { return t.owner == owner })
}

// after schedules run in ms milliseconds from now.
func (d *Device) after(ms int64, owner any, run func()) { d.queue.add(d.now+ms, owner, run) }
