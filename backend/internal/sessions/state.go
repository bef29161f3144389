package sessions

import "github.com/service-dev/service/glasses"

// State is the current state of a session's glasses and apps. It does not depend on which rows remain in the event log.
// Its maps and slices are replaced, never modified.
type State struct {
	Glasses  glasses.State    `json:"glasses"`
	Standing glasses.Standing `json:"standing"`
	// IsPartial reports that deleted rows may have contained more of the state. Fields that no remaining row sets have
	// the values of FreshState.
	IsPartial bool `json:"partial,omitempty"`
}

// FreshState returns the state of a new session.
func FreshState() State { return State{Glasses: glasses.FreshState()} }

// Memory is the stored state from which a session resumes.
type Memory struct {
	// Display is the last successful display.show or display.clear event; its Seq is 0 if there was none.
	Display glasses.Event
	// State is the state from the latest row that has one; nil if no row does.
	State *State
}
