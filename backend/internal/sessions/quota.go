package sessions

import (
	"fmt"
	"time"
)

// Quota bounds event logs. Beyond it the oldest rows are deleted, and a cursor before them gets a truncated page.
type Quota struct {
	SessionRows  int64 // of one session
	SessionBytes int64 // of one session, as Row.Bytes counts
	AccountBytes int64 // of all sessions of an account
}

// DefaultQuota is the quota of the service.
var DefaultQuota = Quota{SessionRows: 100_000, SessionBytes: 64 << 20, AccountBytes: 1 << 30}

// IdleKept is how long the rows of a session are kept after its last activity. The session itself stays.
const IdleKept = 30 * 24 * time.Hour

// DefaultPerMinute is how many sessions an account may create within any minute. Their total is not limited.
const DefaultPerMinute = 30

// MaxSecrets is how many app secrets a session has; beyond it the oldest are deleted.
const MaxSecrets = 1000

// RowOverhead approximates the short columns of a row and its part of the indexes, in bytes.
const RowOverhead = 64

// Bytes returns how much the row counts against a quota.
func (r Row) Bytes() int64 {
	return int64(RowOverhead + len(r.Event.ID) + len(r.Event.Type) + len(r.Event.Payload))
}

// PacedError is returned when the account has created too many sessions within a minute.
type PacedError struct{ Wait time.Duration }

// Error includes how long to wait.
func (e *PacedError) Error() string {
	return fmt.Sprintf("too many sessions were made within a minute; the next is possible in %v", e.Wait)
}
