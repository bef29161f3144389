package relay

import (
	"context"
	"reflect"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
)

// freshState is the initial state, shared by the many sessions that have it.
var freshState = sessions.FreshState()

// shared returns the state, or an equal state that is already in memory.
func shared(state *sessions.State) *sessions.State {
	if reflect.DeepEqual(*state, freshState) {
		return &freshState
	}
	return state
}

// setState changes the session's state, which is stored with the next row. The caller must hold Mu.
func (s *liveSession) setState(state sessions.State) {
	s.state, s.isSaved = &state, false
}

// stateFromRows computes the state of a session whose log contains none. If the first rows were deleted, the state is
// partial.
func (h *Hub) stateFromRows(ctx context.Context, stored sessions.Session) (sessions.State, error) {
	state := sessions.FreshState()
	state.IsPartial = stored.FirstSeq > 1
	asked := map[string]broker.Command{}
	for since := int64(0); since < stored.LastSeq; {
		rows, err := h.Log.SessionEvents(ctx, stored.ID, since, readPage)
		if err != nil {
			return state, err
		}
		if len(rows) == 0 { // every row was deleted
			break
		}
		for _, e := range rows {
			state = stateAfter(state, e, asked)
		}
		since = rows[len(rows)-1].Seq
	}
	return state, nil
}

// stateAfter returns the state after a row. asked holds the commands without a result that may change the standing
// settings; stateAfter updates asked.
func stateAfter(state sessions.State, e glasses.Event, asked map[string]broker.Command) sessions.State {
	switch {
	case e.Kind == glasses.KindRequest:
		if (broker.Command{Type: e.Type}).ChangesStanding() {
			asked[e.ID] = broker.NewCommand(e.Type, e.Payload)
		}
	case e.Kind == glasses.KindResult:
		c, isAsked := asked[e.ID]
		delete(asked, e.ID)
		if res, err := glasses.ParseResult(e.Payload); isAsked && err == nil && res.OK {
			state.Standing = c.Standing(state.Standing)
		}
	case e.Sender == glasses.SenderGlasses:
		state.Glasses, _ = state.Glasses.AfterEvent(e.Type, e.Payload)
	}
	return state
}

// Standing returns the standing settings (host.Host).
func (s *liveSession) Standing() glasses.Standing { return s.state.Standing }

// SetStanding changes the standing settings (host.Host).
func (s *liveSession) SetStanding(standing glasses.Standing) {
	state := *s.state
	state.Standing = standing
	s.setState(state)
}
