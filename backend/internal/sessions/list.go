package sessions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Listing selects open sessions of an account. Sessions with an app attached come first; each group is sorted by last
// use.
type Listing struct {
	Project string // a project's ID, not an alias; if empty, all projects
	After   string // starts after this position, which Page returned; if empty, at the beginning
	Limit   int
}

// Selection selects open sessions of an account in the store, last used first.
type Selection struct {
	Project string
	Before  *Position // if not nil, only sessions that follow this one
	Without []string  // IDs to omit
	Limit   int
}

// Position is the place of a session in a list. It stays valid when the session is used again or deleted.
type Position struct {
	HasApp     bool
	LastActive time.Time
	ID         string
}

// String returns the position in the form of Listing.After.
func (p Position) String() string {
	group := "used"
	if p.HasApp {
		group = "app"
	}
	return fmt.Sprintf("%s.%d.%s", group, p.LastActive.UnixMilli(), p.ID)
}

// parsePosition returns nil for an empty text, and ErrNotFound for an invalid position.
func parsePosition(text string) (*Position, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.SplitN(text, ".", 3)
	if len(parts) != 3 || (parts[0] != "app" && parts[0] != "used") {
		return nil, ErrNotFound
	}
	ms, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return nil, ErrNotFound
	}
	return &Position{parts[0] == "app", time.UnixMilli(ms), parts[2]}, nil
}

// compare orders positions by last use, latest first.
func (p Position) compare(q Position) int {
	return cmp.Or(q.LastActive.Compare(p.LastActive), cmp.Compare(q.ID, p.ID))
}

func positionOf(s Session) Position { return Position{LastActive: s.LastActive, ID: s.ID} }

// Milestones records which first steps an account has completed.
type Milestones struct {
	Opened  bool // a session was opened at any time
	AppSeen bool // an app attached to a session
}

// Page lists open sessions of an account. next is the position of the next page, or "" for the last page. It returns
// ErrNotFound if l.After is not a valid position.
func (s *Service) Page(ctx context.Context, accountID string, l Listing) (list []Session, next string, err error) {
	after, err := parsePosition(l.After)
	if err != nil {
		return nil, "", err
	}
	attached, ids, err := s.withApps(ctx, accountID, l.Project)
	if err != nil {
		return nil, "", fmt.Errorf("list sessions with apps: %w", err)
	}
	sel := Selection{Project: l.Project, Before: after, Without: ids}
	if after == nil || after.HasApp {
		sel.Before = nil
		list = slices.DeleteFunc(attached, func(one Session) bool {
			return after != nil && after.compare(positionOf(one)) >= 0
		})
	}
	inFront := len(list)
	if sel.Limit = l.Limit + 1 - inFront; sel.Limit > 0 {
		rest, err := s.Store.ListSessions(ctx, accountID, sel, s.now())
		if err != nil {
			return nil, "", fmt.Errorf("list sessions: %w", err)
		}
		list = append(list, rest...)
	}
	if len(list) > l.Limit {
		last := positionOf(list[l.Limit-1])
		last.HasApp = l.Limit <= inFront
		list, next = list[:l.Limit], last.String()
	}
	return list, next, nil
}

// maxWithApps limits the sessions with apps at the beginning of a list.
const maxWithApps = 100

// withApps returns the open sessions that have an app attached, last used first, and the IDs of all sessions that it
// considered.
func (s *Service) withApps(ctx context.Context, accountID, project string) (list []Session, ids []string, err error) {
	ids = s.Live.WithApps(accountID)
	slices.Sort(ids)
	ids = ids[:min(len(ids), maxWithApps)]
	if list, err = s.Store.SomeSessions(ctx, ids); err != nil {
		return nil, nil, err
	}
	list = slices.DeleteFunc(list, func(one Session) bool {
		return one.Owner.AccountID != accountID || !one.Open(s.now()) || (project != "" && one.Project != project)
	})
	slices.SortFunc(list, func(a, b Session) int { return positionOf(a).compare(positionOf(b)) })
	return list, ids, nil
}

// Milestones returns the milestones that the account has reached.
func (s *Service) Milestones(ctx context.Context, accountID string) (Milestones, error) {
	m, err := s.Store.Milestones(ctx, accountID)
	if err != nil {
		return Milestones{}, fmt.Errorf("read milestones: %w", err)
	}
	return m, nil
}

// Shown returns an open session of the account, with the content that its glasses show. It returns ErrNotFound or
// ErrClosed on failure.
func (s *Service) Shown(ctx context.Context, accountID, id string) (Session, Memory, error) {
	got, err := s.Get(ctx, accountID, id)
	if err != nil {
		return Session{}, Memory{}, err
	}
	if !got.Open(s.now()) {
		return Session{}, Memory{}, ErrClosed
	}
	m, err := s.Store.Memory(ctx, id)
	if err != nil {
		return Session{}, Memory{}, fmt.Errorf("read display: %w", err)
	}
	return got, m, nil
}
