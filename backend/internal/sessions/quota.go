package sessions

import (
	"fmt"
	"time"
)

// Quota bounds what event logs hold. Over it the oldest rows are deleted, and a cursor before them is answered truncated.
type Quota struct {
	SessionRows  int64 // of one session
	SessionBytes int64 // of one session, as Row.Bytes counts
	AccountBytes int64 // of all sessions of an account
}

// DefaultQuota is what the service keeps.
var DefaultQuota = Quota{SessionRows: 100_000, SessionBytes: 64 << 20, AccountBytes: 1 << 30}

// IdleKept is how long the rows of a session outlive its last activity. The session itself stays.
const IdleKept = 30 * 24 * time.Hour

// DefaultPerMinute is how many sessions an account may make within any minute. Their number is not limited.
const DefaultPerMinute = 30

// MaxSecrets is how many app secrets a session has; the oldest go.
const MaxSecrets = 1000

// RowOverhead stands for the columns of a row that are short and its part of the indexes, in bytes.
const RowOverhead = 64

// Bytes is what the row counts against a quota.
func (r Row) Bytes() int64 {
	return int64(RowOverhead + len(r.Event.ID) + len(r.Event.Type) + len(r.Event.Payload))
}

// PacedError refuses a session because the account has made many just now.
type PacedError struct{ Wait time.Duration }

// Error names how long to wait.
func (e *PacedError) Error() string {
	return fmt.Sprintf("too many sessions were made within a minute; the next is possible in %v", e.Wait)
}
