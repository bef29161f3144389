package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
)

const getSessionStatusText = `Tells how a simulator session stands: whether it is open, how many apps and pages are attached, when it was last used and ` +
	`how far its event log goes. Without sessionId it lists the open sessions of the account. ` +
	`Use it to see whether the app has attached. It does not open a session (createSimulatorSession) and does not show what happened in it (getEventLog). ` +
	`Without a linked account it answers status "auth_required"; see createSimulatorSession.`

type getSessionStatus struct {
	gate     *gate
	sessions sessionReader
}

type sessionReader interface {
	Get(ctx context.Context, target backend.Target, id string) (backend.Session, error)
	List(ctx context.Context, target backend.Target) ([]backend.Session, error)
}

type getSessionStatusArgs struct {
	SessionID string `json:"sessionId"`
}

// sessionState is a session as the agent sees it.
type sessionState struct {
	SessionID    string  `json:"sessionId"`
	State        string  `json:"state"`
	Project      string  `json:"project"`
	Platform     string  `json:"platform"`
	DeviceModel  string  `json:"deviceModel"`
	SessionURL   string  `json:"sessionUrl"`
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
	"apps":{"type":"integer","description":"Apps that are attached now."},
	"pages":{"type":"integer","description":"Simulator pages that are open now."},
	"lastSeq":{"type":"integer","description":"The number of the event log's last row."},
	"createdAt":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}]},
	"lastActiveAt":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}]},
	"closedAt":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}]}}}`

func (t getSessionStatus) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getSessionStatus", Title: "Look at simulator sessions", Description: getSessionStatusText, NeedsAccount: true,
		Annotations: Annotations{ReadOnly: true, Idempotent: true, OpenWorld: true},
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
	return t.gate.run(ctx, c, nil, func(ctx context.Context, target backend.Target) (any, error) {
		if args.SessionID == "" {
			return t.list(ctx, target)
		}
		s, err := t.sessions.Get(ctx, target, args.SessionID)
		if err != nil {
			return nil, err
		}
		state := stateOf(s)
		return sessionStatusAnswer{Status: "ok", Session: &state, Summary: describeSession(s)}, nil
	})
}

func (t getSessionStatus) list(ctx context.Context, target backend.Target) (any, error) {
	open, err := t.sessions.List(ctx, target)
	if err != nil {
		return nil, err
	}
	states := make([]sessionState, len(open))
	for i, s := range open {
		states[i] = stateOf(s)
	}
	summary := fmt.Sprintf("%d sessions are open.", len(open))
	switch len(open) {
	case 0:
		summary = "No session is open; createSimulatorSession opens one."
	case 1:
		summary = describeSession(open[0])
	}
	return sessionStatusAnswer{Status: "ok", Sessions: states, Summary: summary}, nil
}

func describeSession(s backend.Session) string {
	return fmt.Sprintf("Session %s for %s is %s, with %d apps and %d pages attached and %d rows in its event log.",
		s.SessionID, s.Project, s.State, s.Apps, s.Pages, s.LastSeq)
}

func stateOf(s backend.Session) sessionState {
	return sessionState{
		SessionID: s.SessionID, State: s.State, Project: s.Project, Platform: s.Platform, DeviceModel: s.DeviceModel,
		SessionURL: s.SessionURL, AppEndpoint: s.AppEndpoint, Apps: s.Apps, Pages: s.Pages, LastSeq: s.LastSeq,
		CreatedAt: stampOrNull(s.CreatedAt), LastActiveAt: stampOrNull(s.LastActiveAt),
		ExpiresAt: stampOrNull(s.ExpiresAt), ClosedAt: stampOrNull(s.ClosedAt),
	}
}
