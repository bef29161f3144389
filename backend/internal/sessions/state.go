package sessions

import "github.com/service-dev/service/proto/glasses"

// State is what a session knows of its glasses and its apps whatever rows its event log still has. Its maps and slices
// are replaced, never changed.
type State struct {
	Glasses  glasses.State    `json:"glasses"`
	Standing glasses.Standing `json:"standing"`
	// IsPartial reports that rows are gone which may have said more: what no other row said is as in FreshState.
	IsPartial bool `json:"partial,omitempty"`
}

// FreshState returns the state of a session without a past.
func FreshState() State { return State{Glasses: glasses.FreshState()} }

// Memory is what a session remembers when it goes live again.
type Memory struct {
	// Display is the last display.show or display.clear that succeeded; its Seq is 0 if there is none.
	Display glasses.Event
	// State is that of the latest row which had one; nil if none had.
	State *State
}
