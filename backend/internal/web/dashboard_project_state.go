package web

import (
	"errors"
	"slices"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/chart"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
)

// projectState is the first part of a project's page: its current activity and its setup.
type projectState struct {
	Sessions sessionCards // the newest
	Week     []trend      // nil if the backend does no counting
	Counted  bool         // whether there are any counts in the week
	Last     *activityRow // the last change by an agent; nil if there is none
	SetUp    []step
}

func (w *Web) projectState(c *call, keys []projects.KeyInfo) (s projectState, err error) {
	here := projectPath(c.project.ID)
	s.Sessions, err = w.sessionCards(c, sessions.Listing{Project: c.project.ID, Limit: projectSessions}, here)
	if err != nil {
		return s, err
	}
	changes, err := w.Dashboard.Audit.List(c.Context(), c.account.ID,
		audit.Filter{Project: c.project.ID, Actor: audit.KindAgent, ChangesOnly: true, Limit: 1})
	if err != nil {
		return s, err
	}
	if len(changes) > 0 {
		s.Last = &activityRows(changes, []projects.Project{c.project})[0]
	}
	if s.SetUp, err = w.setUp(c, keys); err != nil {
		return s, err
	}
	return s, w.addWeek(c, &s)
}

// addWeek adds the charts of the last seven days.
func (w *Web) addWeek(c *call, s *projectState) error {
	if w.Analytics == nil {
		return nil
	}
	week := analyticsRanges[slices.IndexFunc(analyticsRanges, func(r analyticsRange) bool { return r.Name == "7d" })]
	report, err := w.Analytics.Report(c.Context(), c.account.ID, c.project.ID, week.query(w.Now()))
	if err != nil || len(report.Series) == 0 {
		return err
	}
	isToday := unfinished(report, w.Now()) != ""
	s.Counted = report.Sessions+report.Errors > 0
	s.Week = []trend{
		overTime("sessions", "Sessions by day", "Sessions", report, isToday, chart.Chart.Line,
			func(p analytics.Point) int64 { return p.Sessions }),
		overTime("errors", "Errors by day", "Errors", report, isToday, chart.Chart.Line,
			func(p analytics.Point) int64 { return p.Errors }),
	}
	s.Week[0].Sum, s.Week[1].Sum = grouped(report.Sessions), grouped(report.Errors)
	return nil
}

// setUp lists the parts that a project may have, and which of them are set up. It lists credentials only if some are
// set or needed.
func (w *Web) setUp(c *call, keys []projects.KeyInfo) ([]step, error) {
	hasPage, pageErr := w.Dashboard.Pages.IsChanged(c.Context(), c.account.ID, c.project.ID)
	stored, storedErr := w.Dashboard.Credentials.Status(c.Context(), c.account.ID, c.project.ID)
	if err := errors.Join(pageErr, storedErr); err != nil {
		return nil, err
	}
	use, err := w.credentialUses(c, c.project.ID)
	if err != nil {
		return nil, err
	}
	here := projectPath(c.project.ID)
	steps := []step{
		{Title: "Project key", Text: "for analytics and the AI gateway", Link: "#keys",
			Done: slices.ContainsFunc(keys, func(k projects.KeyInfo) bool { return k.RevokedAt.IsZero() })},
		{Title: "Connection page", Text: "where users connect their glasses", Link: here + "/connection-page", Done: hasPage},
	}
	isMissing := slices.ContainsFunc(stored, func(one credentials.Credential) bool { return use(one).Missing })
	isSet := slices.ContainsFunc(stored, func(one credentials.Credential) bool { return one.Set })
	if isMissing || isSet {
		steps = append(steps, step{Title: "Credentials", Text: "your own keys of AI providers", Done: !isMissing,
			Link: here + "/credentials"})
	}
	return steps, nil
}
