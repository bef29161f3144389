package relay

import (
	"context"
	"crypto/rand"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/broker"
)

// setState changes the session's state, which is stored with the next row. mu is held.
func (s *liveSession) setState(state sessions.State) {
	s.state, s.isSaved = state, false
}

// stateFromRows computes the state of a session whose log has none. If the first rows were deleted, it is partial.
func (h *Hub) stateFromRows(ctx context.Context, stored sessions.Session) (sessions.State, error) {
	state := sessions.FreshState()
	state.IsPartial = stored.FirstSeq > 1
	asked := map[string]broker.Command{}
	for since := int64(0); since < stored.LastSeq; {
		rows, err := h.Log.SessionEvents(ctx, stored.ID, since, replayPage)
		if err != nil {
			return state, err
		}
		if len(rows) == 0 { // all were deleted
			break
		}
		for _, e := range rows {
			state = stateAfter(state, e, asked)
		}
		since = rows[len(rows)-1].Seq
	}
	return state, nil
}

// stateAfter returns the state after a row. asked contains the commands without a result that may change the standing
// settings.
func stateAfter(state sessions.State, e glasses.Event, asked map[string]broker.Command) sessions.State {
	switch {
	case e.Kind == glasses.KindRequest:
		if c := (broker.Command{Type: e.Type, Payload: e.Payload}); c.ChangesStanding() {
			asked[e.ID] = c
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

// setStanding changes the standing settings. mu is held.
func (s *liveSession) setStanding(standing glasses.Standing) {
	state := s.state
	state.Standing = standing
	s.setState(state)
}

// sendStanding restores the settings of the apps on the page that acts as the glasses, even if there are none: a page
// that returns may still listen for an app that has stopped. Without a page it does nothing, because the next page gets
// them when it opens. mu and peersMu are held.
func (s *liveSession) sendStanding() {
	player, standing := s.active.Load(), s.state.Standing
	if player == nil {
		return
	}
	player.sendText(s.hub.frame(glasses.SimStanding, controlPrefix+rand.Text(), broker.ForGlasses(standing, len(s.apps))))
}

// takeOverTranscription resumes transcription if the first app that attaches is the one that started it, and ends it
// for a new app. The row of the end tells the former app if it returns later. mu is held.
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
