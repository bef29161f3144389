package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
)

const closeSessionText = `Ends a session: apps and pages are disconnected, the app's secret is revoked and its file removed. Its event log ` +
	`is deleted (recordSession keeps it). A closed session cannot be opened again; startLocalSimulation or createSimulatorSession ` +
	`opens another. Closing a session that is closed already is no error. Without sessionId it ends the one that this directory used last, never another's. Use it when nobody needs the session any more. There is no need to close one before ` +
	`opening one, which goes on with the open one; a session that nobody uses ends by itself. ` +
	`For a browser session without a linked account it answers status "auth_required".`

type closeSession struct {
	reach
	sessions sessionCloser
}

type sessionCloser interface {
	Close(ctx context.Context, target backend.Target, id string) (backend.Session, error)
}

func noSessionHere() error {
	return &Error{
		Code: backend.CodeNotFound, Message: "this directory has no open session",
		FixHint: "call getSessionStatus to list the open sessions and pass the sessionId of one",
	}
}

type closeSessionArgs struct {
	SessionID string `json:"sessionId"`
}

type closeSessionAnswer struct {
	Status    string  `json:"status"`
	SessionID string  `json:"sessionId"`
	ClosedAt  *string `json:"closedAt"`
	Summary   string  `json:"summary"`
}

func (t closeSession) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "closeSession", Title: "Close a session", Description: closeSessionText,
		Annotations: Annotations{Idempotent: true},
		InputSchema: inputSchema(sessionArgument, ""),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","closed"]},
			"sessionId":{"type":"string"},
			"closedAt":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}]},`+summaryProperty, `"status","summary"`, true),
	}}
}

func (t closeSession) run(ctx context.Context, c call) (any, error) {
	var args closeSessionArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	if args.SessionID == "" {
		latest, ok := t.reach.sessions.Latest(ctx, c.who) // and no other: it ends for everybody
		if !ok {
			return nil, noSessionHere()
		}
		args.SessionID = latest
	}
	return t.reach.run(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		s, err := t.sessions.Close(ctx, target, id)
		if err != nil {
			return nil, err
		}
		return closeSessionAnswer{
			Status: "closed", SessionID: s.SessionID, ClosedAt: stampOrNull(s.ClosedAt),
			Summary: fmt.Sprintf("Session %s for %s is closed.", s.SessionID, s.Project),
		}, nil
	})
}
