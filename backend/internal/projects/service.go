package projects

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/secret"
)

// Service manages the projects of accounts.
type Service struct {
	Store  *Store
	Hasher secret.Hasher
	// Closed ends every connection of a session. It is nil if there is no relay.
	Closed func(sessionID string)
	Now    func() time.Time
}

// List returns the projects of an account, sorted by ID.
func (s *Service) List(ctx context.Context, accountID string) ([]Project, error) {
	all, err := s.Store.Projects(ctx, accountID, "", s.now())
	if err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	return all, nil
}

// Get returns a project of the account, or ErrNotFound. If id was merged into another project, Get returns the other
// project, with its own ID.
func (s *Service) Get(ctx context.Context, accountID, id string) (Project, error) {
	id, err := s.Resolve(ctx, accountID, id)
	if err != nil {
		return Project{}, err
	}
	all, err := s.Store.Projects(ctx, accountID, id, s.now())
	if err != nil {
		return Project{}, fmt.Errorf("read project: %w", err)
	}
	if len(all) == 0 {
		return Project{}, ErrNotFound
	}
	return all[0], nil
}

// Resolve returns only the real ID of a project, with a single query.
func (s *Service) Resolve(ctx context.Context, accountID, id string) (string, error) {
	if CheckID(id) != nil {
		return "", ErrNotFound
	}
	return s.Store.ProjectID(ctx, accountID, id)
}

// Update sets a project's platforms and its name. An empty name resets the name to the default. Update returns an
// *InvalidError or ErrNotFound on failure.
func (s *Service) Update(
	ctx context.Context, accountID, id, displayName string, platforms []string, by audit.Actor,
) (Project, error) {
	id, err := s.Resolve(ctx, accountID, id)
	if err != nil {
		return Project{}, err
	}
	displayName = strings.TrimSpace(displayName)
	if displayName == "" {
		displayName = DefaultName(id)
	}
	if utf8.RuneCountInString(displayName) > MaxDisplayName || strings.ContainsFunc(displayName, unprintable) {
		return Project{}, &InvalidError{fmt.Sprintf("name must be 1 to %d printable characters", MaxDisplayName)}
	}
	if platforms, err = checkPlatforms(platforms); err != nil {
		return Project{}, err
	}
	err = s.Store.ChangeProject(ctx, accountID, id, func(p *Project) (audit.Entry, bool) {
		var what []string
		if p.DisplayName != displayName {
			what = append(what, "name: "+p.DisplayName+" -> "+displayName)
		}
		if was, will := listed(p.Platforms), listed(platforms); was != will {
			what = append(what, "platforms: "+was+" -> "+will)
		}
		p.DisplayName, p.Platforms = displayName, platforms
		return audit.New(s.now(), accountID, by, "project.changed", id, strings.Join(what, "; ")), len(what) > 0
	})
	if err != nil {
		return Project{}, fmt.Errorf("change project: %w", err)
	}
	return s.Get(ctx, accountID, id)
}

func listed(platforms []string) string {
	if len(platforms) == 0 {
		return "none"
	}
	return strings.Join(platforms, ", ")
}

// Merge moves the keys, sessions, analytics and audit entries of from to into, which is another project of the account.
// It also moves the assistant's config, credentials and connection page if into has none. It deletes the rest of from,
// whose ID remains valid everywhere. It returns ErrNotFound or ErrSameProject on failure.
func (s *Service) Merge(ctx context.Context, accountID, from, into string, by audit.Actor) error {
	from, err := s.Resolve(ctx, accountID, from)
	if err != nil {
		return err
	}
	if into, err = s.Resolve(ctx, accountID, into); err != nil {
		return err
	}
	e := audit.New(s.now(), accountID, by, "project.merged", into, from+" became part of "+into)
	if err := s.Store.MergeProjects(ctx, accountID, from, into, e); err != nil {
		return fmt.Errorf("merge projects: %w", err)
	}
	return nil
}

// Delete deletes a project and everything that belongs to it, and ends its open sessions. It keeps the audit entries.
// It returns ErrNotFound for an unknown project.
func (s *Service) Delete(ctx context.Context, accountID, id string, by audit.Actor) error {
	id, err := s.Resolve(ctx, accountID, id)
	if err != nil {
		return err
	}
	open, err := s.Store.DeleteProject(ctx, accountID, id, audit.New(s.now(), accountID, by, "project.deleted", id,
		"deleted "+id))
	if err != nil {
		return fmt.Errorf("delete project: %w", err)
	}
	if s.Closed != nil {
		for _, session := range open {
			s.Closed(session)
		}
	}
	return nil
}

// now returns the time in the store's precision, so that results equal later reads.
func (s *Service) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

func unprintable(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
