// Package audit records who read and changed an account's data: agents, the account holder, the operator. It knows
// neither what a change means nor SQL: the feature that makes a change passes its entry to the store together with the
// change.
package audit

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Kinds of actors.
const (
	KindAgent    = "agent"    // a linked install, with its token
	KindPerson   = "person"   // the signed-in account holder, in a browser
	KindOperator = "operator" // service-backend admin
	KindBackend  = "backend"  // the backend itself, e.g. a sweep or a limit
)

// Actor is who did something. LinkID is the agent's link; it is empty for other actors.
type Actor struct {
	Kind   string
	LinkID string
}

// Agent returns the actor behind a link.
func Agent(linkID string) Actor { return Actor{Kind: KindAgent, LinkID: linkID} }

// Person returns the account holder in a browser.
func Person() Actor { return Actor{Kind: KindPerson} }

// Operator returns the operator of the backend.
func Operator() Actor { return Actor{Kind: KindOperator} }

// Entry records one action. It contains no secrets and no values of credentials.
type Entry struct {
	// ID sorts by time and is the cursor of a listing. New sets it.
	ID        string
	AccountID string
	At        time.Time
	Actor     Actor
	// ActorName is set when entries are listed, e.g. "laptop · Claude Code" for an agent's link.
	ActorName string
	// Action is <noun>.<verb in the past>, e.g. assistant.changed, assistant.read, key.revoked, grants.changed.
	Action string
	// Project is an app id. It is empty if the action concerns the account.
	Project string
	// Summary describes the action to the account holder in one line, e.g. "voice: ember -> harbor".
	Summary string
	// Before and After are the changed fields of a config, for undoing the change, or nil.
	Before, After json.RawMessage
	// UndoneBy is the id of the entry that undid this one.
	UndoneBy string
}

// New returns an entry whose id sorts by time. The caller sets the other fields.
func New(at time.Time, accountID string, by Actor, action, project, summary string) Entry {
	return Entry{ID: uuid.Must(uuid.NewV7()).String(), AccountID: accountID, At: at, Actor: by, Action: action,
		Project: project, Summary: summary}
}

// Undoable reports whether the change can be undone: it has a Before and was not undone yet.
func (e Entry) Undoable() bool { return len(e.Before) > 0 && e.UndoneBy == "" }
