package tools

import (
	"context"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/internal/problem"
)

// sessionGate finds the session of a call. Local sessions need no account. Calls about browser sessions go through the
// gate.
type sessionGate struct {
	gate     *gate
	sessions Sessions
	// cursors maps a session to the number of the last log row before its most recent injection.
	cursors *recent[int64]
}

// sessionWork is the part of a tool that handles a session.
type sessionWork func(ctx context.Context, target backend.Target, id string) (any, error)

// answering returns a function that makes a request about a session or a project. answer converts the reply.
func answering[T any](
	request func(context.Context, backend.Target, string) (T, error), answer func(T) any,
) func(context.Context, backend.Target, string) (any, error) {
	return func(ctx context.Context, target backend.Target, id string) (any, error) {
		reply, err := request(ctx, target, id)
		if err != nil {
			return nil, err
		}
		return answer(reply), nil
	}
}

// onSession runs work on the session with this ID. Without an ID, it uses the session that the caller's directory used
// most recently. If there is none, it uses the most recently used open session of any directory. If the directory has a
// project, that session must belong to the project, so that a call does not act on another app's session.
func (r sessionGate) onSession(ctx context.Context, c call, id string, do sessionWork) (any, error) {
	if id == "" {
		latest, err := r.latest(ctx, c.who)
		if err != nil {
			return nil, err
		}
		id = latest
	}
	if session.IsLocal(id) {
		return do(ctx, backend.Target{}, id)
	}
	return r.gate.run(ctx, c, nil, func(ctx context.Context,
		target backend.Target) (any, error) {
		return do(ctx, target, id)
	})
}

func (r sessionGate) latest(ctx context.Context, who caller.Caller) (string, error) {
	if id, ok := r.sessions.Latest(ctx, who); ok {
		return id, nil
	}
	// Without a usable link, list contains only the local sessions.
	target, _, _ := r.gate.links.Target(ctx, who)
	open, err := r.sessions.List(ctx, target)
	if len(open) == 0 {
		if err != nil && !isAuth(err) {
			return "", err
		}
		return "", noSession()
	}
	project, err := r.sessions.Project(ctx, "", who)
	if err != nil {
		return "", err
	}
	var latest backend.Session
	for _, s := range open {
		if (project == "" || s.Project == project) && (latest.SessionID == "" || s.LastActiveAt.After(latest.LastActiveAt)) {
			latest = s
		}
	}
	if latest.SessionID == "" {
		return "", &problem.Error{
			Code: problem.CodeNotFound, Message: "no session of " + project + ", this directory's project, is open",
			FixHint: "Call startLocalSimulation or createSimulatorSession to open one, or pass the sessionId of another " +
				"project's session: getSessionStatus lists them.",
		}
	}
	return latest.SessionID, nil
}

// isAuth reports whether the backend refused the account. In that case there are no browser sessions to list.
func isAuth(err error) bool {
	p := problem.From(err)
	return p != nil && p.Code == problem.CodeAuthRequired
}

func noSession() error {
	return &problem.Error{
		Code: problem.CodeNotFound, Message: "no session is open",
		FixHint: "Call startLocalSimulation to open one without an account, or createSimulatorSession for one in the " +
			"browser, or pass the sessionId of another.",
	}
}

// mark stores the last row of a session's log before an injection. waitForEvent starts there. The call succeeds even if
// the log is unreadable.
func (r sessionGate) mark(ctx context.Context, target backend.Target, id string) int64 {
	s, err := r.sessions.Get(ctx, target, id)
	if err != nil {
		return r.cursors.get(id)
	}
	r.cursors.set(id, s.LastSeq)
	return s.LastSeq
}

// maxCursors is the number of sessions whose last row is stored.
const maxCursors = 256
