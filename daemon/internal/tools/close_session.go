package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
)

type closeSession struct {
	sessionGate
}

func noSessionHere() error {
	return &problem.Error{
		Code: problem.CodeNotFound, Message: "this directory has no open session",
		FixHint: "Call getSessionStatus to list the open sessions and pass the sessionId of one.",
	}
}

type closeSessionArgs struct {
	sessionArg
}

type closeSessionAnswer struct {
	Status    string  `json:"status"`
	SessionID string  `json:"sessionId"`
	ClosedAt  *string `json:"closedAt" format:"date-time"`
	Summary   string  `json:"summary"`
}

func (t closeSession) definition() definition {
	return define(Tool{
		Name: "closeSession", Title: "Close a session",
		Annotations:  Annotations{Idempotent: true},
		OutputSchema: gatedAnswersOf[closeSessionAnswer]([]string{"closed"}),
	}, t.run)
}

func (t closeSession) run(ctx context.Context, c call, args closeSessionArgs) (any, error) {
	if args.SessionID == "" {
		latest, ok := t.sessions.Latest(ctx, c.who) // closing ends the session for all its users
		if !ok {
			return nil, noSessionHere()
		}
		args.SessionID = latest
	}
	return t.onSession(ctx, c, args.SessionID, answering(t.sessions.Close, func(s backend.Session) any {
		return closeSessionAnswer{
			Status: "closed", SessionID: s.SessionID, ClosedAt: stampOrNull(s.ClosedAt),
			Summary: fmt.Sprintf("Session %s for %s is closed.", s.SessionID, s.Project),
		}
	}))
}
