package host

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
)

// Attach adds an app and logs its arrival.
func (s *Session[A]) Attach(ctx context.Context, app A) {
	s.Apps.Add(app)
	a := app.Attached()
	if s.Apps.Len() == 1 && s.host.Standing().Transcription != nil {
		s.takeOverTranscription(ctx, a.Since != nil)
	}
	s.Log(ctx, glasses.RowAppAttached, a.Info)
}

// takeOverTranscription keeps transcription running if the first app to attach has been attached before, and ends it
// for a new app. The row about the end informs the former app if that app returns later.
func (s *Session[A]) takeOverTranscription(ctx context.Context, isBack bool) {
	if isBack {
		s.SendStanding()
		return
	}
	standing := s.host.Standing()
	standing.Transcription = nil
	s.host.SetStanding(standing)
	s.Log(ctx, glasses.TypeTranscription, glasses.TranscriptionState{})
}

// Detach removes an app that has left and logs its departure.
func (s *Session[A]) Detach(ctx context.Context, app A) {
	s.Apps.Remove(app)
	if s.Apps.Len() == 0 && s.host.Standing().Transcription != nil {
		s.SendStanding() // no app receives transcripts any longer
	}
	s.Log(ctx, glasses.RowAppDetached, app.Attached().Info)
}

// SendStanding restores the apps' standing settings on the glasses. Without glasses it does nothing, because the next
// glasses receive the settings when they attach.
func (s *Session[A]) SendStanding() {
	standing := broker.ForGlasses(s.host.Standing(), s.Apps.Len())
	s.host.SendControl(s.Frame(glasses.SimStanding, NewControlID(), standing))
}

// Welcome returns the first frame for an app, which answers the hello with the ID helloID. glassesState is the state of
// the glasses. The caller need not hold Mu.
func (s *Session[A]) Welcome(
	ctx context.Context, app A, helloID, sessionID, model string, rows Rows, glassesState glasses.AppState,
) []byte {
	deviceModel, _ := glasses.Model(model)
	since := app.Attached().Since
	return s.Frame(glasses.TypeWelcome, helloID, glasses.Welcome{
		SessionID: sessionID, DeviceModel: deviceModel, Link: glassesState.Link, LastSeq: rows.Last,
		Glasses: glassesState, Truncated: since != nil && *since < rows.First-1, Gateway: s.newGateway(ctx, app),
	})
}

// Replay sends the app the events and results after its cursor. The caller need not hold Mu.
func (s *Session[A]) Replay(ctx context.Context, app A, rows Rows, pass func(frame []byte) error) error {
	since := app.Attached().Since
	if since == nil {
		return nil
	}
	return rows.Replay(ctx, *since, func(row glasses.Event) error {
		if frame := broker.Replay(row); frame != nil {
			return pass(frame)
		}
		return nil
	})
}

// newGateway returns the gateway's address and a new token for an app. It returns nil if there is no gateway, or if no
// token is available; the next call of RenewTokens then tries again. The caller need not hold Mu.
func (s *Session[A]) newGateway(ctx context.Context, app A) *glasses.Gateway {
	before := app.Attached().tokenEnds.Load()
	gateway, err := s.host.NewGateway(ctx, app)
	ends := int64(0)
	switch {
	case err != nil:
		gateway, ends = nil, s.host.TokenTime().UnixMilli() // due now
	case gateway != nil:
		ends = s.host.TokenTime().Add(glasses.GatewayTokenLife).UnixMilli()
	}
	// Welcome and RenewTokens may run concurrently. If RenewTokens has sent a token in the meantime, a welcome without
	// one must not mark the app as having none, because no token would follow the one that was sent.
	app.Attached().tokenEnds.CompareAndSwap(before, ends)
	return gateway
}

// RenewTokens sends a new token to each app whose token expires soon. If hasChanged is set, the session may have gained
// a gateway, so RenewTokens also sends a token to each app without one. The caller need not hold Mu.
func (s *Session[A]) RenewTokens(ctx context.Context, hasChanged bool) {
	soon := s.host.TokenTime().Add(glasses.GatewayTokenRenew)
	for _, app := range s.Apps.All() {
		a := app.Attached()
		ends := a.tokenEnds.Load()
		if !a.takesTokens || ends == 0 && !hasChanged || !time.UnixMilli(ends).Before(soon) {
			continue
		}
		if gateway := s.newGateway(ctx, app); gateway != nil {
			app.SendText(s.Frame(glasses.TypeGatewayToken, "gateway-"+rand.Text(), gateway))
		}
	}
}
