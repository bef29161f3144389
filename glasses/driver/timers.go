package driver

import "slices"

// Timers holds functions to run at set times. The zero value is empty.
type Timers struct{ list []*Timer }

// Timer is a function that runs once at a set time unless it is stopped first.
type Timer struct {
	at  int64
	run func()
}

// Add schedules f for the time at. Timers with the same time run in the order in which they were added.
func (t *Timers) Add(at int64, f func()) *Timer {
	i := len(t.list)
	for i > 0 && t.list[i-1].at > at {
		i--
	}
	one := &Timer{at, f}
	t.list = slices.Insert(t.list, i, one)
	return one
}

// Stop removes a timer. It does nothing if the timer is nil or has already run.
func (t *Timers) Stop(one *Timer) {
	t.list = slices.DeleteFunc(t.list, func(other *Timer) bool { return other == one })
}

// Next returns the time of the first timer. ok is false if there is none.
func (t *Timers) Next() (at int64, ok bool) {
	if len(t.list) == 0 {
		return 0, false
	}
	return t.list[0].at, true
}

// Pop removes the first timer if it is due by now, and returns its time and function. f is nil if no timer is due.
func (t *Timers) Pop(now int64) (at int64, f func()) {
	if len(t.list) == 0 || t.list[0].at > now {
		return 0, nil
	}
	first := t.list[0]
	t.list = slices.Delete(t.list, 0, 1)
	return first.at, first.run
}
