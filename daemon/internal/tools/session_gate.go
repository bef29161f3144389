package tools

import (
	"context"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/session"
)

// sessionGate finds the session of a call and lets the call through: local sessions need no account, browser sessions
// are behind the gate.
type sessionGate struct {
	gate     *gate
	sessions sessionFinder
	// cursors are the last rows of the sessions' logs before the last injection.
	cursors *recent[int64]
}

type sessionFinder interface {
	Latest(ctx context.Context, who caller.Caller) (id string, ok bool)
	Get(ctx context.Context, target backend.Target, id string) (backend.Session, error)
	List(ctx context.Context, target backend.Target) ([]backend.Session, error)
}

// sessionWork is what a tool does with a session.
type sessionWork func(ctx context.Context, target backend.Target, id string) (any, error)

// answering is the work that makes a request about a session or a project; answer converts the reply.
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

// onSession works on the session with this id. Without an id it is the session that the caller's directory used last,
// or the open session that was used last anywhere.
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
	// Without a usable link these are only the local sessions.
	target, _, _ := r.gate.links.Target(ctx, who)
	open, err := r.sessions.List(ctx, target)
	if len(open) == 0 {
		if err != nil && !isAuth(err) {
			return "", err
		}
		return "", noSession()
	}
	latest := open[0]
	for _, s := range open[1:] {
		if s.LastActiveAt.After(latest.LastActiveAt) {
			latest = s
		}
	}
	return latest.SessionID, nil
}

// isAuth reports whether the backend refused the account; then there are no browser sessions to list.
func isAuth(err error) bool {
	p := problemOf(err)
	return p != nil && p.Code == backend.CodeAuthRequired
}

func noSession() error {
	return &Error{
		Code: backend.CodeNotFound, Message: "no session is open",
		FixHint: "call startLocalSimulation to open one without an account, or createSimulatorSession for one in the " +
			"browser, or pass the sessionId of another",
	}
}

// mark remembers the last row of a session's log before an injection, where waitForEvent starts. A log that cannot be
// read does not fail the call.
func (r sessionGate) mark(ctx context.Context, target backend.Target, id string) int64 {
	s, err := r.sessions.Get(ctx, target, id)
	if err != nil {
		return r.cursors.get(id)
	}
	r.cursors.set(id, s.LastSeq)
	return s.LastSeq
}

// maxCursors bounds how many sessions are remembered.
const maxCursors = 256
