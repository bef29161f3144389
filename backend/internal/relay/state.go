package relay

import (
	"context"
	"reflect"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host"
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

// setState changes the session's state, which is stored with the next row. The caller must hold mu.
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
		rows, err := h.Log.SessionEvents(ctx, stored.ID, since, replayPage)
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

// setStanding changes the standing settings. The caller must hold mu.
func (s *liveSession) setStanding(standing glasses.Standing) {
	state := *s.state
	state.Standing = standing
	s.setState(state)
}

// sendStanding sends the apps' settings to the page that acts as the glasses, even if there are none: a page that
// returns may still be listening for an app that has stopped. Without a page it does nothing, because the next page
// receives the settings when it opens. The caller must hold mu and peersMu.
func (s *liveSession) sendStanding() {
	player, standing := s.active.Load(), s.state.Standing
	if player == nil {
		return
	}
	player.SendText(s.hub.frame(glasses.SimStanding, host.NewControlID(), broker.ForGlasses(standing, len(s.apps))))
}

// takeOverTranscription continues transcription if the first app to attach is the one that started it, and ends it for
// a new app. The row about the end informs the former app if it returns later. The caller must hold mu.
func (s *liveSession) takeOverTranscription(ctx context.Context, isBack bool) {
	standing := s.state.Standing
	if standing.Transcription == nil {
		return
	}
	s.peersMu.Lock()
	isFirst := len(s.apps) <= 1
	if isFirst && isBack {
		s.sendStanding()
	}
	s.peersMu.Unlock()
	if !isFirst || isBack {
		return
	}
	standing.Transcription = nil
	s.setStanding(standing)
	s.logService(ctx, glasses.TypeTranscription, glasses.TranscriptionState{})
}
