package sessions

import (
	"fmt"
	"time"
)

// Quota limits the size of event logs. Beyond it, the oldest rows are deleted, and a page read from a cursor before
// them is marked as truncated.
type Quota struct {
	SessionRows  int64 // rows per session
	SessionBytes int64 // bytes per session, as counted by Row.Bytes
	AccountBytes int64 // bytes of all sessions of an account
}

// DefaultQuota is the quota in production.
var DefaultQuota = Quota{SessionRows: 100_000, SessionBytes: 64 << 20, AccountBytes: 1 << 30}

// IdleKept is how long the rows of a session are kept after its last activity. The session itself is kept.
const IdleKept = 30 * 24 * time.Hour

// DefaultPerMinute is how many sessions an account may create per minute. There is no limit on their total.
const DefaultPerMinute = 30

// MaxSecrets is how many app secrets a session can have. Beyond it the oldest are deleted.
const MaxSecrets = 1000

// RowOverhead is the approximate size of a row's short columns and index entries, in bytes.
const RowOverhead = 64

// Bytes returns the row's size as counted against a quota.
func (r Row) Bytes() int64 {
	return int64(RowOverhead + len(r.Event.ID) + len(r.Event.Type) + len(r.Event.Payload))
}

// PacedError is returned if the account has created too many sessions within a minute.
type PacedError struct{ Wait time.Duration }

// Error returns a message that includes the wait.
func (e *PacedError) Error() string {
	return fmt.Sprintf("too many sessions created within a minute; try again in %v", e.Wait)
}
