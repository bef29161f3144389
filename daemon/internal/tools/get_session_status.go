package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses/uncleared"
)

type getSessionStatus struct {
	sessionGate
}

type getSessionStatusArgs struct {
	SessionID string `json:"sessionId" jsonschema:"Default: list the open sessions."`
}

// sessionState is a session in the form for agents.
type sessionState struct {
	sessionAddress
	State        string  `json:"state" jsonschema:"open or closed."`
	Transport    string  `json:"transport" jsonschema:"local, browser or the id of another."`
	Clock        string  `json:"clock" jsonschema:"real or virtual."`
	NowMs        int64   `json:"nowMs" jsonschema:"The session's clock: Unix time, or virtual time since it began."`
	Apps         int     `json:"apps" jsonschema:"Apps that are attached now."`
	Pages        int     `json:"pages" jsonschema:"Simulator pages that are open now."`
	LastSeq      int64   `json:"lastSeq" jsonschema:"The number of the event log's latest row."`
	CreatedAt    *string `json:"createdAt" format:"date-time"`
	LastActiveAt *string `json:"lastActiveAt" format:"date-time"`
	ClosedAt     *string `json:"closedAt" format:"date-time"`
	// Glasses is set for real glasses.
	Glasses *realGlasses `json:"glasses,omitempty" jsonschema:"Real glasses: their links, battery and proof."`
}

type sessionStatusAnswer struct {
	Status   string         `json:"status"`
	Session  *sessionState  `json:"session,omitempty"`
	Sessions []sessionState `json:"sessions,omitzero"`
	// Environment is set if a single session is open and its app secret is on this machine.
	Environment map[string]string `json:"environment,omitempty"`
	Summary     string            `json:"summary"`
}

func (t getSessionStatus) definition() definition {
	return define(readOnly("getSessionStatus", "Look at sessions",
		gatedAnswersOf[sessionStatusAnswer]([]string{"ok"}),
	), t.run)
}

func (t getSessionStatus) run(ctx context.Context, c call, args getSessionStatusArgs) (any, error) {
	if args.SessionID == "" {
		return t.list(ctx, c)
	}
	return t.onSession(ctx, c, args.SessionID, answering(t.sessions.Get, func(s backend.Session) any {
		answer := sessionStatusAnswer{Status: "ok", Session: new(stateOf(s)), Summary: describeSession(s)}
		if file := t.sessions.AppTokenFile(s.SessionID); file != "" && s.State == "open" && s.AppEndpoint != "" {
			answer.Environment = appEnvironment(session.Opened{Session: s, AppTokenFile: file})
		}
		return answer
	}))
}

// list lists the open sessions. It never asks for a link; without one it lists only local sessions.
func (t getSessionStatus) list(ctx context.Context, c call) (any, error) {
	target, _, _ := t.gate.links.Target(ctx, c.who)
	open, err := t.sessions.List(ctx, target)
	if err != nil && !isAuth(err) && len(open) == 0 {
		return nil, err
	}
	note := ""
	switch {
	case target.Bearer == "":
		note = " Sessions in the browser are listed once an account is linked."
	case err != nil:
		note = " Sessions in the browser cannot be listed now: " + err.Error() + "."
	}
	states := make([]sessionState, len(open))
	for i, s := range open {
		states[i] = stateOf(s)
	}
	summary := fmt.Sprintf("%d sessions are open.", len(open))
	switch len(open) {
	case 0:
		summary = "No session is open; startLocalSimulation opens one without an account, createSimulatorSession one in " +
			"the browser."
	case 1:
		summary = describeSession(open[0])
	}
	return sessionStatusAnswer{Status: "ok", Sessions: states, Summary: summary + note}, nil
}

func describeSession(s backend.Session) string {
	text := fmt.Sprintf("Session %s for %s (%s, %s glasses, %s time) is %s, with %d apps and %d pages attached and %d "+
		"rows in its event log.",
		s.SessionID, s.Project, s.Transport, s.DeviceModel, s.Clock, s.State, s.Apps, s.Pages, s.LastSeq)
	if s.Hardware != nil && s.Hardware.Uncleared {
		text += " Tell the user: " + uncleared.Notice(s.Hardware.Pair.Name) + "; " + uncleared.Next + "."
	}
	return text
}

func stateOf(s backend.Session) sessionState {
	var real *realGlasses
	if s.Hardware != nil {
		real = new(realGlassesOf(s.DeviceModel, *s.Hardware))
	}
	return sessionState{
		Glasses: real,
		sessionAddress: sessionAddress{
			SessionID: s.SessionID, Project: s.Project, Platform: s.Platform, DeviceModel: s.DeviceModel,
			SessionURL: s.SessionURL, AppEndpoint: s.AppEndpoint, ExpiresAt: stampOrNull(s.ExpiresAt),
		},
		State: s.State, Transport: s.Transport, Clock: s.Clock, NowMs: s.NowMs,
		Apps: s.Apps, Pages: s.Pages, LastSeq: s.LastSeq,
		CreatedAt: stampOrNull(s.CreatedAt), LastActiveAt: stampOrNull(s.LastActiveAt), ClosedAt: stampOrNull(s.ClosedAt),
	}
}
