package sessions

import (
	"context"
	"fmt"
	"time"
)

// Listing selects open sessions of an account, newest first.
type Listing struct {
	Project string // a project's ID, not an alias; if empty, all projects
	After   string // the ID of a session; lists only the sessions that follow it
	Limit   int
}

// Milestones says how far an account has come.
type Milestones struct {
	Opened  bool // a session was opened, however long ago
	AppSeen bool // an app attached to a session
}

// Lists lists sessions for a person.
type Lists interface {
	// ListSessions lists the sessions that are open at now.
	ListSessions(ctx context.Context, accountID string, l Listing, now time.Time) ([]Session, error)
	Milestones(ctx context.Context, accountID string) (Milestones, error)
}

// Page lists open sessions of an account, and reports whether more follow.
func (s *Service) Page(ctx context.Context, accountID string, l Listing) (list []Session, more bool, err error) {
	limit := l.Limit
	l.Limit++
	if list, err = s.Store.ListSessions(ctx, accountID, l, s.now()); err != nil {
		return nil, false, fmt.Errorf("list sessions: %w", err)
	}
	return list[:min(len(list), limit)], len(list) > limit, nil
}

// Milestones returns what the account has done so far.
func (s *Service) Milestones(ctx context.Context, accountID string) (Milestones, error) {
	m, err := s.Store.Milestones(ctx, accountID)
	if err != nil {
		return Milestones{}, fmt.Errorf("read milestones: %w", err)
	}
	return m, nil
}

// Shown returns an open session of the account, with what its glasses show. The error may be ErrNotFound or ErrClosed.
func (s *Service) Shown(ctx context.Context, accountID, id string) (Session, Memory, error) {
	got, err := s.Get(ctx, accountID, id)
	if err != nil {
		return Session{}, Memory{}, err
	}
	if !got.Open(s.now()) {
		return Session{}, Memory{}, ErrClosed
	}
	m, err := s.Log.Memory(ctx, id)
	if err != nil {
		return Session{}, Memory{}, fmt.Errorf("read display: %w", err)
	}
	return got, m, nil
}
