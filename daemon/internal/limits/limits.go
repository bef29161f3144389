// Package limits bounds the connections and calls of clients, in total and per process, so that a runaway process
// leaves the rest to others. Both sockets of the daemon use it.
package limits

import (
	"fmt"
	"sync"
)

// Usage counts the use of one resource. It is safe for concurrent use.
type Usage struct {
	all, own int

	mu        sync.Mutex
	used      int
	started   int64
	processes map[int]int
}

// New returns a Usage that admits at most all uses in total and own uses by one process. A limit of 0 means no limit.
func New(all, own int) *Usage { return &Usage{all: all, own: own, processes: map[int]int{}} }

// Excess is the limit that a use would exceed. PID is the process that reached its own limit, or 0 if the limit of all
// processes is reached.
type Excess struct{ PID, Limit int }

// OfProcess returns the text for a process that reached its limit of a resource, such as "calls".
func (e *Excess) OfProcess(resource string) string {
	return fmt.Sprintf("process %d reached its limit of %d %s", e.PID, e.Limit, resource)
}

// Acquire counts a use by process pid, which is 0 if unknown. If it returns nil, the caller must call Release. extra is
// added to both limits.
func (u *Usage) Acquire(pid, extra int) *Excess {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case pid != 0 && u.own > 0 && u.processes[pid] >= u.own+extra:
		return &Excess{PID: pid, Limit: u.own + extra}
	case u.all > 0 && u.used >= u.all+extra:
		return &Excess{Limit: u.all + extra}
	}
	u.used++
	u.started++
	u.processes[pid]++
	return nil
}

// Release ends n uses by process pid.
func (u *Usage) Release(pid, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.used -= n
	if u.processes[pid] -= n; u.processes[pid] <= 0 {
		delete(u.processes, pid)
	}
}

// Counts returns the number of current uses and the number of all uses since the start.
func (u *Usage) Counts() (used int, started int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.used, u.started
}
