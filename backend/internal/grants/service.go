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

// ErrRaises is returned for a change that is not allowed to raise a level but would.
var ErrRaises = errors.New("the change raises a level")

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

// Exception is the access to a project that has its own levels.
type Exception struct {
	Grants
	Own []Row // levels set for the project, in display order; never empty
}

// Service reads and sets the grants of projects. Projects are identified by their real ID, never by an alias.
type Service struct {
	Store *Store
	Now   func() time.Time
}

// Of returns the grants of a project. Levels not set for the project come from the account's default.
func (s *Service) Of(ctx context.Context, accountID, project string) (Grants, error) {
	rows, err := s.Store.GrantRows(ctx, accountID, project)
	if err != nil {
		return Grants{}, fmt.Errorf("read grants: %w", err)
	}
	return byProject(rows).of(project), nil
}

// All returns the account's default grants, and the projects that have their own levels, even if these equal the
// default.
func (s *Service) All(ctx context.Context, accountID string) (usual Grants, exceptions map[string]Exception, err error) {
	rows, err := s.Store.GrantRows(ctx, accountID, "")
	if err != nil {
		return Grants{}, nil, fmt.Errorf("read grants: %w", err)
	}
	levels := byProject(rows)
	exceptions = map[string]Exception{}
	for project, own := range levels {
		if own := sorted(own); project != "" && len(own) > 0 {
			exceptions[project] = Exception{levels.of(project), own}
		}
	}
	return levels.of(""), exceptions, nil
}

// Set sets the grants of a project. Each level that changes becomes the project's own, even if it equals the
// account's default; the other levels do not change. The change takes effect with the next read. Only the account
// holder may call Set, never an agent. It returns an *InvalidError, ErrNoProject or ErrRaises on failure.
func (s *Service) Set(ctx context.Context, accountID, project string, g Grants, mayRaise bool, by audit.Actor) error {
	if project == "" {
		return ErrNoProject
	}
	if err := g.check(); err != nil {
		return err
	}
	return s.change(ctx, accountID, project, mayRaise, func(former []Row, _ []string) ([]Row, []audit.Entry) {
		levels := byProject(former)
		was := levels.of(project)
		rows := levels[""]
		each(func(c Capability, field string) {
			l := g.Of(c, field)
			isOwn := slices.ContainsFunc(levels[project], func(r Row) bool { return r.Capability == c && r.Field == field })
			if isOwn || l != was.Of(c, field) {
				rows = append(rows, Row{project, c, field, l})
			}
		})
		return rows, s.entry(accountID, project, by, differences(was, g))
	})
}

// Follow deletes a project's own levels, so that the project follows the account's default. If project is empty, it
// does so for every project. The change takes effect with the next read. It returns ErrNoProject or ErrRaises on
// failure.
func (s *Service) Follow(ctx context.Context, accountID, project string, mayRaise bool, by audit.Actor) error {
	return s.change(ctx, accountID, project, mayRaise, func(former []Row, projects []string) ([]Row, []audit.Entry) {
		levels := byProject(former)
		return levels[""], s.entries(accountID, by, projects, levels, levels.account())
	})
}

// SetDefault sets the account's default, which applies to new projects and wherever a project has no level of its own.
// If everywhere is set, the default applies to all projects: their own levels are deleted. The change takes effect with
// the next read. SetDefault returns an *InvalidError or ErrRaises on failure.
func (s *Service) SetDefault(
	ctx context.Context, accountID string, g Grants, everywhere, mayRaise bool, by audit.Actor,
) error {
	if err := g.check(); err != nil {
		return err
	}
	return s.change(ctx, accountID, "", mayRaise, func(former []Row, projects []string) ([]Row, []audit.Entry) {
		was := byProject(former)
		rows := g.defaultRows()
		if !everywhere {
			rows = append(rows, slices.DeleteFunc(slices.Clone(former), func(r Row) bool { return r.Project == "" })...)
		}
		entries := s.entries(accountID, by, projects, was, byProject(rows))
		// The account's own entry comes last, because lists show the newest entry first.
		return rows, append(entries, s.entry(accountID, "", by, differences(was.of(""), g))...)
	})
}

// entries returns an entry for each project whose access changes or that no longer has its own levels.
func (s *Service) entries(accountID string, by audit.Actor, projects []string, was, will levels) (all []audit.Entry) {
	for _, project := range projects {
		what := differences(was.of(project), will.of(project))
		if len(what) == 0 && len(was[project]) > len(will[project]) {
			what = []string{"follows the account's default"}
		}
		all = append(all, s.entry(accountID, project, by, what)...)
	}
	return all
}

// change writes the rows and entries that the function returns. Unless mayRaise is set, it returns ErrRaises if the
// account's default or a project would get a higher level than before.
func (s *Service) change(
	ctx context.Context, accountID, project string, mayRaise bool,
	change func(former []Row, projects []string) ([]Row, []audit.Entry),
) error {
	refused := false
	err := s.Store.ChangeGrants(ctx, accountID, project, func(former []Row, projects []string) ([]Row, []audit.Entry) {
		rows, entries := change(former, projects)
		was, will := byProject(former), byProject(rows)
		refused = !mayRaise && slices.ContainsFunc(append([]string{""}, projects...), func(id string) bool {
			return was.of(id).Raises(will.of(id))
		})
		if refused {
			return nil, nil
		}
		return rows, entries
	})
	if err != nil {
		return fmt.Errorf("set grants: %w", err)
	}
	if refused {
		return ErrRaises
	}
	return nil
}

// entry returns the audit entry for a change, or no entry if there is no difference.
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

// levels holds stored rows by project. The key "" holds the account's default.
type levels map[string][]Row

func byProject(rows []Row) levels {
	l := levels{}
	for _, r := range rows {
		l[r.Project] = append(l[r.Project], r)
	}
	return l
}

// account returns only the account's default.
func (l levels) account() levels { return levels{"": l[""]} }

// of returns the levels of a project: its own rows, then the account's rows, then the built-in default. If project is
// empty, it returns the account's default.
func (l levels) of(project string) Grants {
	g := Default()
	for _, rows := range [][]Row{l[""], l[project]} {
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
	}
	return g
}

// sorted returns the rows of one project in display order, without fields that no longer exist.
func sorted(rows []Row) (all []Row) {
	each(func(c Capability, field string) {
		for _, r := range rows {
			if r.Capability == c && r.Field == field {
				all = append(all, r)
			}
		}
	})
	return all
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
		if l := g.Of(c, field); err == nil && !slices.Contains(Levels(), l) {
			err = &InvalidError{fmt.Sprintf("the level of %s must be one of %v", name(c, field), Levels())}
		}
	})
	if err == nil && len(g.Assistant) != len(Fields()) {
		err = &InvalidError{"a level is set for a field that the assistant's config does not have"}
	}
	return err
}

// defaultRows returns the levels of an account's default that differ from the built-in default.
func (g Grants) defaultRows() (rows []Row) {
	each(func(c Capability, field string) {
		if l := g.Of(c, field); l != Default().Of(c, field) {
			rows = append(rows, Row{"", c, field, l})
		}
	})
	return rows
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
