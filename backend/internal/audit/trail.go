package audit

import (
	"net/netip"
	"time"

	"github.com/google/uuid"
)

// TrailAction is an action on a link or on the code that requests one.
type TrailAction string

// Actions in the linking trail.
const (
	TrailIssue    TrailAction = "issue"
	TrailView     TrailAction = "view"
	TrailApprove  TrailAction = "approve"
	TrailDeny     TrailAction = "deny"
	TrailCancel   TrailAction = "cancel" // the client stops polling the code
	TrailRedeem   TrailAction = "redeem"
	TrailRevoke   TrailAction = "revoke"
	TrailThrottle TrailAction = "throttle"
	TrailSuspend  TrailAction = "suspend"
	TrailRestore  TrailAction = "restore"
)

// Limits of the linking trail.
const (
	TrailKept      = 90 * 24 * time.Hour
	TrailLines     = 1_000_000 // limit for the actions in AnybodysTrail; others are deleted only by age
	MaxTrailListed = 1000      // lines per listing
)

// AnybodysTrail returns the actions that anyone can trigger without an account. Their number of lines must be
// limited.
func AnybodysTrail() []TrailAction {
	return []TrailAction{TrailIssue, TrailView, TrailThrottle, TrailDeny, TrailCancel}
}

// TrailRef hashes a value that a line refers to. kind separates the hashes of equal texts of different kinds, such as
// an address and an account. A reader of the database cannot recover values that are no longer stored. Values that
// other tables still contain can be matched with lines by time.
type TrailRef func(kind, value string) string

// NewTrailRef returns a TrailRef that uses the backend's keyed hash. It returns "" for an empty value.
func NewTrailRef(hash func(kind, value string) string) TrailRef {
	return func(kind, value string) string {
		if value == "" {
			return ""
		}
		return hash("trail", kind+":"+value)[:32] // 128 bits are enough to distinguish values and keep a line short
	}
}

// Trace describes the line that a change adds to the operator's linking trail. The store inserts the line in the
// transaction of the change, and takes its code, link and account from the change. The zero Trace adds no line.
type Trace struct {
	Action TrailAction
	At     time.Time
	// Address is the caller's address in plain text. Only its hash is stored.
	Address string
	// If Once is not empty, only the first line with this text is stored.
	Once string
	Ref  TrailRef
}

// TrailLine is a stored line: a time and hashes. Code, Account and Link are the hashes of a user code, an account ID
// and a link ID.
type TrailLine struct {
	ID                           string
	At                           time.Time
	Action                       TrailAction
	Code, Link, Account, Address string
}

// Empty reports whether the trace adds no line.
func (t Trace) Empty() bool { return t.Ref == nil }

// Line returns the line for the keyed hash of a user code, a link ID and an account ID. Each of them may be empty.
func (t Trace) Line(codeHash, linkID, accountID string) TrailLine {
	id := t.Ref("once", t.Once)
	if id == "" {
		id = uuid.Must(uuid.NewV7()).String()
	}
	return TrailLine{ID: id, At: t.At, Action: t.Action, Code: t.Ref("code", codeHash), Link: t.Ref("link", linkID),
		Account: t.Ref("account", accountID), Address: t.Ref("address", PlainAddress(t.Address))}
}

// PlainAddress returns the canonical form of a network address, so that equal addresses have equal hashes. If s is not
// an address, it returns s unchanged.
func PlainAddress(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return s
	}
	return a.Unmap().String()
}

// TrailFilter selects the lines with these hashes. Empty fields match every line.
type TrailFilter struct {
	Code, Link, Account, Address string
	Limit                        int // clamped to 1..MaxTrailListed; 0 means MaxTrailListed
}
