package tools

import (
	"context"
	"sync"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/session"
)

// reach finds the session that a call is about and lets the call through: local sessions need no account, browser
// sessions stand behind the gate.
type reach struct {
	gate     *gate
	sessions sessionFinder
	cursors  *cursors
}

type sessionFinder interface {
	Latest(ctx context.Context, who caller.Caller) (id string, ok bool)
	Get(ctx context.Context, target backend.Target, id string) (backend.Session, error)
	List(ctx context.Context, target backend.Target) ([]backend.Session, error)
}

// sessionWork is what a tool does with a session.
type sessionWork func(ctx context.Context, target backend.Target, id string) (any, error)

const sessionArgument = `"sessionId":{"type":"string","description":"Left out: the session that this directory used last."}`

// run does the work on the session of this id; without one on the session that the caller's directory used last, else
// on the open one that was used last anywhere.
func (r reach) run(ctx context.Context, c call, id string, do sessionWork) (any, error) {
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
	return r.gate.run(ctx, c, nil, func(ctx context.Context, target backend.Target) (any, error) { return do(ctx, target, id) })
}

func (r reach) latest(ctx context.Context, who caller.Caller) (string, error) {
	if id, ok := r.sessions.Latest(ctx, who); ok {
		return id, nil
	}
	// Without a usable link these are the local sessions alone.
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

// isAuth tells whether the backend refused the account; then there simply are no browser sessions to be seen.
func isAuth(err error) bool {
	p := problemOf(err)
	return p != nil && p.Code == backend.CodeAuthRequired
}

func noSession() error {
	return &Error{
		Code: backend.CodeNotFound, Message: "no session is open",
		FixHint: "call startLocalSimulation to open one without an account, or createSimulatorSession for one in the browser, or pass the sessionId of another",
	}
}

// mark remembers where a session's log stands before something is done to it, so that waitForEvent can look at what came
// of it. A log that cannot be read is no reason to refuse the call.
func (r reach) mark(ctx context.Context, target backend.Target, id string) int64 {
	s, err := r.sessions.Get(ctx, target, id)
	if err != nil {
		return r.cursors.of(id)
	}
	r.cursors.set(id, s.LastSeq)
	return s.LastSeq
}

// maxCursors bounds how many sessions are remembered.
const maxCursors = 256

// cursors remember for each session where its log stood before the last injection. The zero value is ready.
type cursors struct {
	mu    sync.Mutex
	byID  map[string]int64
	order []string
}

func (c *cursors) of(id string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID[id]
}

func (c *cursors) set(id string, seq int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[string]int64{}
	}
	if _, known := c.byID[id]; !known {
		if c.order = append(c.order, id); len(c.order) > maxCursors {
			delete(c.byID, c.order[0])
			c.order = c.order[1:]
		}
	}
	c.byID[id] = seq
}
