package audit

import (
	"net/netip"
	"time"

	"github.com/google/uuid"
)

// TrailAction is what happened to a link, or to the code that asks for one.
type TrailAction string

// The actions of the trail of linking.
const (
	TrailIssue    TrailAction = "issue"
	TrailView     TrailAction = "view"
	TrailApprove  TrailAction = "approve"
	TrailDeny     TrailAction = "deny"
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

// AnybodysTrail are the actions whose lines need no account: there may be any number of them.
func AnybodysTrail() []TrailAction {
	return []TrailAction{TrailIssue, TrailView, TrailThrottle, TrailDeny}
}

// TrailRef hashes what a line is about; kind keeps an address apart from an account of the same text. It hides from who
// reads the database alone what is no longer stored: while the code, the link or the activity that a line is about is
// there, the same moment in both tells that they belong together.
type TrailRef func(kind, value string) string

// NewTrailRef takes the backend's keyed hash. An empty value has the empty ref.
func NewTrailRef(hash func(kind, value string) string) TrailRef {
	return func(kind, value string) string {
		if value == "" {
			return ""
		}
		return hash("trail", kind+":"+value)[:32] // 128 bits tell them apart and keep a line short
	}
}

// Trace is the line that a change leaves in the operator's trail of linking. The store writes it in the transaction of
// the change, once it knows what the change was about. The zero Trace leaves no line.
type Trace struct {
	Action TrailAction
	At     time.Time
	// Address is where the call came from, in clear; it is hashed on the way.
	Address string
	// Once, when set, lets only the first of the lines with the same text be written.
	Once string
	Ref  TrailRef
}

// TrailLine is a line as stored: a time and hashes. Code stands for a user code, Account for an
// account's id, Link for a link's.
type TrailLine struct {
	ID                           string
	At                           time.Time
	Action                       TrailAction
	Code, Link, Account, Address string
}

// Empty tells that there is nothing to write.
func (t Trace) Empty() bool { return t.Ref == nil }

// Line fills in what a change was about: the keyed hash of the user code, the link's id, the account's id; any may be
// empty.
func (t Trace) Line(codeHash, linkID, accountID string) TrailLine {
	id := t.Ref("once", t.Once)
	if id == "" {
		id = uuid.Must(uuid.NewV7()).String()
	}
	return TrailLine{ID: id, At: t.At, Action: t.Action, Code: t.Ref("code", codeHash), Link: t.Ref("link", linkID),
		Account: t.Ref("account", accountID), Address: t.Ref("address", PlainAddress(t.Address))}
}

// PlainAddress writes a network address in its one usual form, so that all its forms have one hash; what is none stays.
func PlainAddress(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return s
	}
	return a.Unmap().String()
}

// TrailFilter narrows a listing to lines with these refs; empty ones narrow nothing.
type TrailFilter struct {
	Code, Link, Account, Address string
	Limit                        int // clamped to 1..MaxTrailListed; 0: MaxTrailListed
}
