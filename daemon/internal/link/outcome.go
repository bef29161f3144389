package link

import (
	"github.com/service-dev/service/internal/problem"
)

// refused ends a flow because of the backend's response p. failed is the number of consecutive failed polls.
func (m *Manager) refused(f *flow, p *problem.Error, failed int) {
	m.mu.Lock()
	f.count++
	lost := f.answerLost
	m.mu.Unlock()
	problem, outcome := outcomeOf(p, failed, lost)
	m.finish(f, Outcome{}, problem, outcome)
}

// finish sets and announces the outcome of a flow that has none.
func (m *Manager) finish(f *flow, out Outcome, problem *problem.Error, word string) {
	m.mu.Lock()
	if !f.finished.IsZero() {
		m.mu.Unlock()
		return
	}
	end := m.setOutcome(f, out, problem)
	m.mu.Unlock()
	m.announce(f, end, word)
}

// setOutcome sets the outcome of a flow that has none, and stops its poller. The caller holds m.mu.
func (m *Manager) setOutcome(f *flow, out Outcome, problem *problem.Error) *result {
	f.end.outcome, f.finished = out, m.Now()
	if problem != nil {
		f.end.err = problem
	}
	if f.polling { // a waiter that restarts the flow after this point starts a new poller
		f.stop()
		f.polling, f.saving = false, false
		m.polling--
	}
	if key := liveKey(f.target.BaseURL); m.live[key] == f && !isRestartable(f.end.err) {
		delete(m.live, key)
	}
	return f.end
}

// announce records how a flow ended, then wakes its waiters.
func (m *Manager) announce(f *flow, end *result, word string) {
	// A stopping daemon leaves the code to the next one.
	if !f.exclusive && !isRestartable(end.err) && asProblem(end.err).Code != problem.CodePollingAborted {
		if err := m.Codes.Remove(f.code.DeviceCode); err != nil {
			m.Log.Warn("failed to remove a used device code", "err", err)
		}
	}
	// Record the outcome first, so that waiters see it when they wake.
	m.completed(f, word)
	close(end.done)
}
