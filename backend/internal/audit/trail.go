package audit

import (
	"net/netip"
	"time"

	"github.com/google/uuid"
)

// TrailAction is what happened to a link, or to the code that requests one.
type TrailAction string

// The actions of the trail of linking.
const (
	TrailIssue    TrailAction = "issue"
	TrailView     TrailAction = "view"
	TrailApprove  TrailAction = "approve"
	TrailDeny     TrailAction = "deny"
	TrailCancel   TrailAction = "cancel" // by the client, which no longer polls the code
	TrailRedeem   TrailAction = "redeem"
	TrailRevoke   TrailAction = "revoke"
	TrailThrottle TrailAction = "throttle"
	TrailSuspend  TrailAction = "suspend"
	TrailRestore  TrailAction = "restore"
)

// Bounds of the trail.
const (
	TrailKept      = 90 * 24 * time.Hour
	TrailLines     = 1_000_000 // of AnybodysTrail; the oldest go first, the other actions by their age alone
	MaxTrailListed = 1000      // lines of one listing
)

// AnybodysTrail returns the actions that anybody can cause without an account, so that the number of their lines must
// be bounded.
func AnybodysTrail() []TrailAction {
	return []TrailAction{TrailIssue, TrailView, TrailThrottle, TrailDeny, TrailCancel}
}

// TrailRef hashes the subject of a line; kind separates an address from an account of the same text. The hash hides
// values that are no longer stored from a reader of the database. It cannot hide those that still are: equal times
// reveal that a line belongs to a row.
type TrailRef func(kind, value string) string

// NewTrailRef returns a TrailRef that uses the backend's keyed hash. The ref of an empty value is empty.
func NewTrailRef(hash func(kind, value string) string) TrailRef {
	return func(kind, value string) string {
		if value == "" {
			return ""
		}
		return hash("trail", kind+":"+value)[:32] // 128 bits tell them apart and keep a line short
	}
}

// Trace describes the line that a change adds to the operator's trail of linking. The store inserts it in the
// transaction of the change, which determines its subject. The zero Trace adds no line.
type Trace struct {
	Action TrailAction
	At     time.Time
	// Address is the caller's address in plain text; it is stored as a hash.
	Address string
	// Once, if not empty, stores only the first of the lines with the same text.
	Once string
	Ref  TrailRef
}

// TrailLine is a stored line: a time and hashes. Code is the hash of a user code, Account of an account's id, Link of a
// link's.
type TrailLine struct {
	ID                           string
	At                           time.Time
	Action                       TrailAction
	Code, Link, Account, Address string
}

// Empty reports whether there is nothing to write.
func (t Trace) Empty() bool { return t.Ref == nil }

// Line returns the line about the keyed hash of a user code, a link's id and an account's id, each of which may be
// empty.
func (t Trace) Line(codeHash, linkID, accountID string) TrailLine {
	id := t.Ref("once", t.Once)
	if id == "" {
		id = uuid.Must(uuid.NewV7()).String()
	}
	return TrailLine{ID: id, At: t.At, Action: t.Action, Code: t.Ref("code", codeHash), Link: t.Ref("link", linkID),
		Account: t.Ref("account", accountID), Address: t.Ref("address", PlainAddress(t.Address))}
}

// PlainAddress returns the canonical form of a network address, so that all its forms have one hash, or s itself if it
// is not an address.
func PlainAddress(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return s
	}
	return a.Unmap().String()
}

// TrailFilter selects lines with these refs; empty ones do not filter.
type TrailFilter struct {
	Code, Link, Account, Address string
	Limit                        int // clamped to 1..MaxTrailListed; 0: MaxTrailListed
}
