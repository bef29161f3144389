package grants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// ErrNoProject is returned for an unknown project.
var ErrNoProject = errors.New("no such project")

// InvalidError reports an unknown level, or a level for an unknown field. Message is for display.
type InvalidError struct{ Message string }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

// Row is a level that differs from the default. Field is empty except for the assistant's config.
type Row struct {
	Capability Capability
	Field      string
	Level      Level
}

// Store stores the levels that differ from the default.
type Store interface {
	GrantRows(ctx context.Context, accountID, project string) ([]Row, error)
	// SetGrantRows replaces the rows in one transaction, together with the audit entry that tell returns for the
	// previous rows. If tell returns false, nothing is written. It returns ErrNoProject for an unknown project.
	SetGrantRows(ctx context.Context, accountID, project string, rows []Row, tell func(was []Row) (audit.Entry,
		bool)) error
}

// Service reads and sets the grants of projects. Projects are identified by their real ID, never by an alias.
type Service struct {
	Store Store
	Now   func() time.Time
}

// Of returns the grants of a project, or the default ones if they were never set.
func (s *Service) Of(ctx context.Context, accountID, project string) (Grants, error) {
	rows, err := s.Store.GrantRows(ctx, accountID, project)
	if err != nil {
		return Grants{}, fmt.Errorf("read grants: %w", err)
	}
	return fromRows(rows), nil
}

// Set replaces the grants of a project. The change takes effect with the next read. Only the account holder may call
// it, never an agent. The error may be an *InvalidError or ErrNoProject.
func (s *Service) Set(ctx context.Context, accountID, project string, g Grants, by audit.Actor) error {
	if err := g.check(); err != nil {
		return err
	}
	err := s.Store.SetGrantRows(ctx, accountID, project, g.rows(), func(was []Row) (audit.Entry, bool) {
		what := differences(fromRows(was), g)
		return audit.New(s.Now().UTC().Truncate(time.Millisecond), accountID, by, "grants.changed", project,
			strings.Join(what, "; ")), len(what) > 0
	})
	if err != nil {
		return fmt.Errorf("set grants: %w", err)
	}
	return nil
}

// each calls visit for every level, in display order.
func each(visit func(c Capability, field string)) {
	for _, f := range Fields() {
		visit(Assistant, f)
	}
	visit(Credentials, "")
	visit(Analytics, "")
}

func (g Grants) check() (err error) {
	each(func(c Capability, field string) {
		if l := g.Of(c, field); err == nil && !slices.Contains(Levels(field), l) {
			err = &InvalidError{fmt.Sprintf("the level of %s must be one of %v", name(c, field), Levels(field))}
		}
	})
	if err == nil && len(g.Assistant) != len(Fields()) {
		err = &InvalidError{"a level is set for a field that the assistant's config does not have"}
	}
	return err
}

// rows returns the levels that differ from the default ones.
func (g Grants) rows() []Row {
	var rows []Row
	usual := Default()
	each(func(c Capability, field string) {
		if l := g.Of(c, field); l != usual.Of(c, field) {
			rows = append(rows, Row{c, field, l})
		}
	})
	return rows
}

func fromRows(rows []Row) Grants {
	g := Default()
	for _, r := range rows {
		switch r.Capability {
		case Assistant:
			if _, ok := g.Assistant[r.Field]; ok {
				g.Assistant[r.Field] = r.Level
			}
		case Credentials:
			g.Credentials = r.Level
		case Analytics:
			g.Analytics = r.Level
		}
	}
	return g
}

// differences describes each difference for display, such as "analytics: read -> off".
func differences(was, will Grants) []string {
	var all []string
	each(func(c Capability, field string) {
		if a, b := was.Of(c, field), will.Of(c, field); a != b {
			all = append(all, fmt.Sprintf("%s: %s -> %s", name(c, field), a, b))
		}
	})
	return all
}

func name(c Capability, field string) string {
	if field != "" {
		return string(c) + "." + field
	}
	return string(c)
}
