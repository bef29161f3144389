package statefile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// LockWait is how long Do waits for another process to release the lock. A process holds it for the duration of one
// change.
const LockWait = 200 * time.Millisecond

// ErrLocked is returned if another process held the lock for all of LockWait.
var ErrLocked = errors.New("another process holds the lock")

// Lock serialises changes to files that several processes share. It is safe for concurrent use.
type Lock struct {
	mu   sync.Mutex
	path string
	file *flock.Flock
}

// NewLock returns the lock at path. The lock's file is created with mode 0600 and never removed.
func NewLock(path string) *Lock {
	return &Lock{path: path, file: flock.New(path, flock.SetPermissions(0o600))}
}

// Do runs act while holding the lock. If it cannot acquire the lock, it returns an error that contains the file's path.
func (l *Lock) Do(act func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), LockWait)
	defer cancel()
	if _, err := l.file.TryLockContext(ctx, 2*time.Millisecond); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = ErrLocked
		}
		return fmt.Errorf("lock %s: %w", l.path, cause(err))
	}
	defer l.file.Unlock() //nolint:errcheck // closing the file releases the lock in any case
	return act()
}
