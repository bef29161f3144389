package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
)

const getSessionStatusText = `Tells how a session of glasses stands: whether it is open, on which transport and clock, which glasses, how many apps and pages are ` +
	`attached, when it was last used and how far its event log goes. Without sessionId it lists the open sessions: local ones, and with a linked account ` +
	`those in the browser. Use it to see whether the app has attached. It opens no session (startLocalSimulation, createSimulatorSession), does not show what happened ` +
	`in one (getEventLog) nor what the wearer sees (getDisplayState). Asked for a browser session without a linked account it answers status "auth_required"; see createSimulatorSession.`

type getSessionStatus struct{ reach }

type getSessionStatusArgs struct {
	SessionID string `json:"sessionId"`
}

// sessionState is a session as the agent sees it.
type sessionState struct {
	SessionID    string  `json:"sessionId"`
	State        string  `json:"state"`
	Transport    string  `json:"transport"`
	Clock        string  `json:"clock"`
	NowMs        int64   `json:"nowMs"`
	Project      string  `json:"project"`
	Platform     string  `json:"platform,omitempty"`
	DeviceModel  string  `json:"deviceModel"`
	SessionURL   string  `json:"sessionUrl,omitempty"`
	AppEndpoint  string  `json:"appEndpoint"`
	Apps         int     `json:"apps"`
	Pages        int     `json:"pages"`
	LastSeq      int64   `json:"lastSeq"`
	CreatedAt    *string `json:"createdAt"`
	LastActiveAt *string `json:"lastActiveAt"`
	ExpiresAt    *string `json:"expiresAt"`
	ClosedAt     *string `json:"closedAt"`
}

type sessionStatusAnswer struct {
	Status   string         `json:"status"`
	Session  *sessionState  `json:"session,omitempty"`
	Sessions []sessionState `json:"sessions,omitzero"`
	Summary  string         `json:"summary"`
}

const sessionStateSchema = `{"type":"object","properties":{` + sessionProperties + `,
	"state":{"type":"string","description":"open or closed."},
	"transport":{"type":"string","description":"local or browser."},
	"clock":{"type":"string","description":"real or virtual."},
	"nowMs":{"type":"integer","description":"The session's clock: Unix time, or virtual time since it began."},
	"apps":{"type":"integer","description":"Apps that are attached now."},
	"pages":{"type":"integer","description":"Simulator pages that are open now."},
	"lastSeq":{"type":"integer","description":"The number of the event log's last row."},
	"createdAt":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}]},
	"lastActiveAt":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}]},
	"closedAt":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}]}}}`

func (t getSessionStatus) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getSessionStatus", Title: "Look at sessions", Description: getSessionStatusText,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(`"sessionId":{"type":"string","description":"Left out: the open sessions are listed."}`, ""),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","ok"]},
			"session":`+sessionStateSchema+`,
			"sessions":{"type":"array","items":`+sessionStateSchema+`},`+summaryProperty, `"status","summary"`, true),
	}}
}

func (t getSessionStatus) run(ctx context.Context, c call) (any, error) {
	var args getSessionStatusArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	if args.SessionID == "" {
		return t.list(ctx, c)
	}
	return t.reach.run(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		s, err := t.sessions.Get(ctx, target, id)
		if err != nil {
			return nil, err
		}
		state := stateOf(s)
		return sessionStatusAnswer{Status: "ok", Session: &state, Summary: describeSession(s)}, nil
	})
}

// list asks nobody for a link: without one there are local sessions only.
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
		summary = "No session is open; startLocalSimulation opens one without an account, createSimulatorSession one in the browser."
	case 1:
		summary = describeSession(open[0])
	}
	return sessionStatusAnswer{Status: "ok", Sessions: states, Summary: summary + note}, nil
}

func describeSession(s backend.Session) string {
	return fmt.Sprintf("Session %s for %s (%s, %s glasses, %s time) is %s, with %d apps and %d pages attached and %d rows in its event log.",
		s.SessionID, s.Project, s.Transport, s.DeviceModel, s.Clock, s.State, s.Apps, s.Pages, s.LastSeq)
}

func stateOf(s backend.Session) sessionState {
	return sessionState{
		SessionID: s.SessionID, State: s.State, Transport: s.Transport, Clock: s.Clock, NowMs: s.NowMs, Project: s.Project, Platform: s.Platform, DeviceModel: s.DeviceModel,
		SessionURL: s.SessionURL, AppEndpoint: s.AppEndpoint, Apps: s.Apps, Pages: s.Pages, LastSeq: s.LastSeq,
		CreatedAt: stampOrNull(s.CreatedAt), LastActiveAt: stampOrNull(s.LastActiveAt),
		ExpiresAt: stampOrNull(s.ExpiresAt), ClosedAt: stampOrNull(s.ClosedAt),
	}
}
