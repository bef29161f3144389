package sessions

import "sync"

// maxAccountWaits is how many calls of one account may wait for events at once: one account must not take what all have.
const maxAccountWaits = 100

// waits counts the waiting calls of each account.
type waits struct {
	mu sync.Mutex
	of map[string]int
}

// enter tells whether one more may wait; leave must be called then.
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
