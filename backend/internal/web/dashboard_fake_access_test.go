package web

import (
	"context"
	"slices"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/sessions"
)

func (f fakeGrants) Of(_ context.Context, _, project string) (grants.Grants, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g, ok := f.grants[project]; ok {
		return g, nil
	}
	return f.usual, nil
}

// All returns the levels that differ from the default as the project's own levels.
func (f fakeGrants) All(_ context.Context, account string) (grants.Grants, map[string]grants.Exception, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if account != adaID {
		return grants.Default(), nil, nil
	}
	exceptions := map[string]grants.Exception{}
	for project, g := range f.grants {
		e := grants.Exception{Grants: g}
		own := func(c grants.Capability, field string) {
			if l := g.Of(c, field); l != f.usual.Of(c, field) {
				e.Own = append(e.Own, grants.Row{Project: project, Capability: c, Field: field, Level: l})
			}
		}
		for _, field := range grants.Fields() {
			own(grants.Assistant, field)
		}
		own(grants.Credentials, "")
		own(grants.Analytics, "")
		exceptions[project] = e
	}
	return f.usual, exceptions, nil
}

func (f fakeGrants) Follow(_ context.Context, _, project string, mayRaise bool, by audit.Actor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, g := range f.grants {
		if !mayRaise && (project == "" || project == id) && g.Raises(f.usual) {
			return grants.ErrRaises
		}
	}
	if project == "" {
		clear(f.grants)
	}
	delete(f.grants, project)
	f.note(by, "grants.changed", project, "follows the account's default")
	return nil
}

func (f fakeGrants) Set(_ context.Context, _, project string, g grants.Grants, mayRaise bool, by audit.Actor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := grants.Levels(); !slices.Contains(known, g.Analytics) || !slices.Contains(known, g.Credentials) {
		return &grants.InvalidError{Message: "the level is none"}
	}
	was, ok := f.grants[project]
	if !ok {
		was = f.usual
	}
	if !mayRaise && was.Raises(g) {
		return grants.ErrRaises
	}
	f.grants[project] = g
	if len(levelDifferences(g, f.usual)) == 0 {
		delete(f.grants, project)
	}
	f.note(by, "grants.changed", project, "analytics: read -> "+string(g.Analytics))
	return nil
}

func (f fakeGrants) SetDefault(_ context.Context, account string, g grants.Grants, everywhere, mayRaise bool,
	by audit.Actor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(grants.Levels(), g.Analytics) {
		return &grants.InvalidError{Message: "the level is none"}
	}
	if account != adaID {
		if !mayRaise && grants.Default().Raises(g) {
			return grants.ErrRaises
		}
		return nil
	}
	raises := f.usual.Raises(g)
	for _, one := range f.grants {
		raises = raises || everywhere && one.Raises(g)
	}
	if raises && !mayRaise {
		return grants.ErrRaises
	}
	f.usual = g
	if everywhere {
		clear(f.grants)
	}
	f.note(by, "grants.default_changed", "", "analytics: read -> "+string(g.Analytics))
	return nil
}

// Page uses IDs as positions.
func (f fakeSessions) Page(_ context.Context, account string, l sessions.Listing) (
	list []sessions.Session, next string, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sessions {
		if s.Owner.AccountID == account && s.ClosedAt.IsZero() && (l.Project == "" || s.Project == l.Project) {
			list = append(list, s)
		}
	}
	if l.After != "" {
		list = list[1+slices.IndexFunc(list, func(s sessions.Session) bool { return s.ID == l.After }):]
	}
	if len(list) > l.Limit {
		list = list[:l.Limit]
		next = list[l.Limit-1].ID
	}
	return list, next, nil
}

func (f fakeSessions) Attached(id string) sessions.Live { return f.live[id] }

func (f fakeSessions) find(account, id string) (*sessions.Session, error) {
	for i := range f.sessions {
		if s := &f.sessions[i]; s.ID == id && s.Owner.AccountID == account {
			return s, nil
		}
	}
	return nil, sessions.ErrNotFound
}

func (f fakeSessions) Shown(_ context.Context, account, id string) (sessions.Session, sessions.Memory, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.find(account, id)
	switch {
	case err != nil:
		return sessions.Session{}, sessions.Memory{}, err
	case !s.ClosedAt.IsZero():
		return sessions.Session{}, sessions.Memory{}, sessions.ErrClosed
	}
	return *s, f.shown[id], nil
}

func (f fakeSessions) Close(_ context.Context, account, id string) (sessions.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.find(account, id)
	if err != nil {
		return sessions.Session{}, err
	}
	s.ClosedAt = then
	f.calls = append(f.calls, "session.closed "+id)
	return *s, nil
}

func (f fakeSessions) Milestones(_ context.Context, account string) (sessions.Milestones, error) {
	if account != adaID {
		return sessions.Milestones{}, nil
	}
	return f.reached, nil
}
