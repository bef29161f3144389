package sessions

import "sync"

// maxAccountWaits limits the calls of one account that wait for events, so that one account cannot exhaust the shared
// capacity.
const maxAccountWaits = 100

// waits counts the waiting calls of each account.
type waits struct {
	mu sync.Mutex
	of map[string]int
}

// enter reports whether another call may wait. If it returns true, the caller must call leave.
func (w *waits) enter(account string) (leave func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[account] >= maxAccountWaits {
		return nil, false
	}
	if w.of == nil {
		w.of = map[string]int{}
	}
	w.of[account]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.of[account]--; w.of[account] == 0 {
			delete(w.of, account)
		}
	}, true
}
