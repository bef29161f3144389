// Package audit records who read or changed an account's data: agents, the account holder or the operator. It does
// not interpret changes: the feature that makes a change inserts the entry in the same transaction.
package audit

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Kinds of actors.
const (
	KindAgent    = "agent"    // a linked install, with its token
	KindPerson   = "person"   // the signed-in account holder, in a browser
	KindOperator = "operator" // service-backend admin
	KindBackend  = "backend"  // the backend itself, for example a cleanup or a limit
)

// Actor is the user or program that acted. LinkID is the agent's link, and empty for other actors.
type Actor struct {
	Kind   string
	LinkID string
}

// Agent returns the actor for an agent that uses the link.
func Agent(linkID string) Actor { return Actor{Kind: KindAgent, LinkID: linkID} }

// Person returns the actor for the account holder, acting in a browser.
func Person() Actor { return Actor{Kind: KindPerson} }

// Operator returns the actor for the backend's operator.
func Operator() Actor { return Actor{Kind: KindOperator} }

// Entry records one action. It contains no secrets and no credential values.
type Entry struct {
	// ID sorts by time and serves as the cursor of a listing. New sets it.
	ID        string
	AccountID string
	At        time.Time
	Actor     Actor
	// ActorName is set only in listings, e.g. "laptop · Claude Code" for an agent's link.
	ActorName string
	// Action has the form <noun>.<past-tense verb>, e.g. assistant.changed, assistant.read, key.revoked, grants.changed.
	Action string
	// Project is an app ID, or empty if the action concerns the account.
	Project string
	// Summary describes the action to the account holder in one line, e.g. "voice: ember -> harbor".
	Summary string
	// Before and After hold the changed fields of a config, so that the change can be undone. Otherwise they are nil.
	Before, After json.RawMessage
	// UndoneBy is the ID of the entry that undid this one, or empty.
	UndoneBy string
}

// New returns an entry with a new ID that sorts by time. Before, After and UndoneBy are left empty.
func New(at time.Time, accountID string, by Actor, action, project, summary string) Entry {
	return Entry{ID: uuid.Must(uuid.NewV7()).String(), AccountID: accountID, At: at, Actor: by, Action: action,
		Project: project, Summary: summary}
}

// Undoable reports whether the change can be undone: it has a Before and has not been undone.
func (e Entry) Undoable() bool { return len(e.Before) > 0 && e.UndoneBy == "" }

// Settings returns the names of the settings that undoing the entry would restore. Each name consists of the entry's
// project, the changed object and a field of Before.
func (e Entry) Settings() []string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.Before, &fields) != nil {
		return nil
	}
	noun, _, _ := strings.Cut(e.Action, ".")
	names := make([]string, 0, len(fields))
	for field := range fields {
		names = append(names, e.Project+"/"+noun+"/"+field)
	}
	return names
}
