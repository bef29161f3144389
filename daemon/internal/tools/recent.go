package tools

import "sync"

// recent keeps the values of the last limit keys that were set. It is safe for concurrent use.
type recent[V any] struct {
	limit int

	mu     sync.Mutex
	values map[string]V
	order  []string
}

func newRecent[V any](limit int) *recent[V] { return &recent[V]{limit: limit, values: map[string]V{}} }

func (r *recent[V]) get(key string) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.values[key]
}

// set sets the value of a key. If there are too many keys, it removes the key that was set first.
func (r *recent[V]) set(key string, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setLocked(key, value)
}

// getOrSet returns the value of a key. If the key has none, getOrSet sets value, and added is true.
func (r *recent[V]) getOrSet(key string, value V) (current V, added bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current, known := r.values[key]; known {
		return current, false
	}
	r.setLocked(key, value)
	return value, true
}

func (r *recent[V]) setLocked(key string, value V) {
	if _, known := r.values[key]; !known {
		r.order = append(r.order, key)
	}
	r.values[key] = value
	if len(r.order) > r.limit {
		delete(r.values, r.order[0])
		r.order = r.order[1:]
	}
}
