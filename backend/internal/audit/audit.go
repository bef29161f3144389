// Package audit is the account's memory of who read and changed what: agents, the person, the operator. It knows
// neither what a change means nor SQL; the feature that changes something hands its entry to the store with the change.
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
	KindBackend  = "backend"  // by itself: a sweep, a limit
)

// Actor is who did it. LinkID is the link of an agent, else empty.
type Actor struct {
	Kind   string
	LinkID string
}

// Agent is the actor behind a link.
func Agent(linkID string) Actor { return Actor{Kind: KindAgent, LinkID: linkID} }

// Person is the account holder in a browser.
func Person() Actor { return Actor{Kind: KindPerson} }

// Operator is whoever runs the backend.
func Operator() Actor { return Actor{Kind: KindOperator} }

// Entry is one thing that was done. It holds no secret and no value of a credential.
type Entry struct {
	// ID grows with time: the cursor of a listing. Set by New.
	ID        string
	AccountID string
	At        time.Time
	Actor     Actor
	// ActorName is filled when entries are listed: "laptop · Claude Code" for an agent's link.
	ActorName string
	// Action is <noun>.<verb in the past>, e.g. assistant.changed, assistant.read, key.revoked, grants.changed.
	Action string
	// Project is an app id, or empty for what concerns the account.
	Project string
	// Summary says it to the account holder in one line, e.g. "voice: ember -> harbor".
	Summary string
	// Before and After are the changed fields of a config, so that Undo can put them back; nil otherwise.
	Before, After json.RawMessage
	// UndoneBy is the id of the entry that took this one back.
	UndoneBy string
}

// New makes an entry; its id sorts by time. Fill in what else is known.
func New(at time.Time, accountID string, by Actor, action, project, summary string) Entry {
	return Entry{ID: uuid.Must(uuid.NewV7()).String(), AccountID: accountID, At: at, Actor: by, Action: action, Project: project, Summary: summary}
}

// Undoable tells whether the change can be taken back: it has a before and was not undone yet.
func (e Entry) Undoable() bool { return len(e.Before) > 0 && e.UndoneBy == "" }
