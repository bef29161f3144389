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

// Row is one stored level. Project is empty for the account's own default; Field is empty except for the assistant's
// config.
type Row struct {
	Project    string
	Capability Capability
	Field      string
	Level      Level
}

// Store stores the account's default levels that differ from the built-in ones, and the levels of projects that were
// set to differ from the account's.
type Store interface {
	// GrantRows returns the account's own rows and those of one project, or of every project if project is empty.
	GrantRows(ctx context.Context, accountID, project string) ([]Row, error)
	// ChangeGrants replaces the rows that GrantRows returns in one transaction, together with the audit entries. If
	// change returns no entry, nothing is written. It returns ErrNoProject for an unknown project.
	ChangeGrants(ctx context.Context, accountID, project string,
		change func(former []Row) (rows []Row, entries []audit.Entry)) error
}

// Service reads and sets the grants of projects. Projects are identified by their real ID, never by an alias.
type Service struct {
	Store Store
	Now   func() time.Time
}

// Of returns the grants of a project. A level that was not set for the project is the account's default.
func (s *Service) Of(ctx context.Context, accountID, project string) (Grants, error) {
	rows, err := s.Store.GrantRows(ctx, accountID, project)
	if err != nil {
		return Grants{}, fmt.Errorf("read grants: %w", err)
	}
	return effective(rows, project), nil
}

// All returns the account's default grants, and the grants of the projects that differ from them.
func (s *Service) All(ctx context.Context, accountID string) (usual Grants, exceptions map[string]Grants, err error) {
	rows, err := s.Store.GrantRows(ctx, accountID, "")
	if err != nil {
		return Grants{}, nil, fmt.Errorf("read grants: %w", err)
	}
	usual, exceptions = effective(rows, ""), map[string]Grants{}
	for _, r := range rows {
		if r.Project == "" || exceptions[r.Project].Assistant != nil {
			continue
		}
		if g := effective(rows, r.Project); len(differences(usual, g)) > 0 {
			exceptions[r.Project] = g
		}
	}
	return usual, exceptions, nil
}

// Set sets the grants of a project. Levels equal to the account's default follow it from then on. The change takes
// effect with the next read. Only the account holder may call it, never an agent. The error may be an *InvalidError or
// ErrNoProject.
func (s *Service) Set(ctx context.Context, accountID, project string, g Grants, by audit.Actor) error {
	if project == "" {
		return ErrNoProject
	}
	if err := g.check(); err != nil {
		return err
	}
	return s.change(ctx, accountID, project, func(former []Row) ([]Row, []audit.Entry) {
		usual := effective(former, "")
		return slices.Concat(of(former, ""), g.rows(project, usual)), s.entry(accountID, project, by,
			differences(effective(former, project), g))
	})
}

// SetDefault sets the account's default, which applies to new projects and wherever a project has no level of its own.
// With everywhere it applies to all projects: their own levels are deleted. Otherwise projects keep the levels that
// differ. The change takes effect with the next read. The error may be an *InvalidError.
func (s *Service) SetDefault(ctx context.Context, accountID string, g Grants, everywhere bool, by audit.Actor) error {
	if err := g.check(); err != nil {
		return err
	}
	return s.change(ctx, accountID, "", func(former []Row) ([]Row, []audit.Entry) {
		rows := g.rows("", Default())
		entries := s.entry(accountID, "", by, differences(effective(former, ""), g))
		for _, project := range projectsOf(former) {
			was := effective(former, project)
			if !everywhere {
				rows = append(rows, ownRows(former, project, g)...)
				continue
			}
			what := differences(was, g)
			if len(what) == 0 { // it only stops having levels of its own
				what = []string{"follows the account's default"}
			}
			entries = append(entries, s.entry(accountID, project, by, what)...)
		}
		return rows, entries
	})
}

func (s *Service) change(
	ctx context.Context, accountID, project string, change func(former []Row) ([]Row, []audit.Entry),
) error {
	if err := s.Store.ChangeGrants(ctx, accountID, project, change); err != nil {
		return fmt.Errorf("set grants: %w", err)
	}
	return nil
}

// entry returns the audit entry of a change, or nothing if there is no difference.
func (s *Service) entry(accountID, project string, by audit.Actor, what []string) []audit.Entry {
	if len(what) == 0 {
		return nil
	}
	action := "grants.changed"
	if project == "" {
		action = "grants.default_changed"
	}
	return []audit.Entry{audit.New(s.Now().UTC().Truncate(time.Millisecond), accountID, by, action, project,
		strings.Join(what, "; "))}
}

// of returns the rows of one project, or the account's own rows if project is empty.
func of(rows []Row, project string) (own []Row) {
	for _, r := range rows {
		if r.Project == project {
			own = append(own, r)
		}
	}
	return own
}

// projectsOf returns the projects that have rows of their own, sorted.
func projectsOf(rows []Row) (all []string) {
	for _, r := range rows {
		if r.Project != "" {
			all = append(all, r.Project)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ownRows returns a project's rows that still differ from a new default. The others follow it.
func ownRows(rows []Row, project string, usual Grants) []Row {
	return slices.DeleteFunc(of(rows, project), func(r Row) bool { return usual.Of(r.Capability, r.Field) == r.Level })
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

// rows returns the levels of a project that differ from usual.
func (g Grants) rows(project string, usual Grants) []Row {
	var rows []Row
	each(func(c Capability, field string) {
		if l := g.Of(c, field); l != usual.Of(c, field) {
			rows = append(rows, Row{project, c, field, l})
		}
	})
	return rows
}

// effective returns the levels of a project: its own rows, then those of the account, then the built-in default. If
// project is empty, it returns the account's default.
func effective(rows []Row, project string) Grants {
	g := Default()
	for _, r := range slices.Concat(of(rows, ""), of(rows, project)) {
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
