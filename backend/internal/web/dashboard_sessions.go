package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

const (
	sessionsPath   = "/account/sessions"
	listedSessions = 12
	// projectSessions is the number of sessions on a project's page. The project's page of sessions lists all of
	// them.
	projectSessions = 3
)

// sessionsPage is the data of the template "dashboard_sessions": all open sessions, or the sessions of one project.
type sessionsPage struct {
	Done     *notice
	Nav      *projectNav // nil for the account's page
	Sessions sessionCards
	Next     string // URL of the sessions that follow; "" if there are none
	First    string // URL of the first sessions; "" if these are the first
}

// sessionCards is the data of the template "session-cards".
type sessionCards struct {
	List []sessionRow
	Next string // position at which the following sessions begin; "" if there are none
}

// sessionRow is an open session. Text that apps report about themselves is sanitized by printable.
type sessionRow struct {
	ID, Model, Platform  string
	Project, ProjectPath string
	ProjectName          string
	Age                  string
	Created              shownTime
	Apps                 []string
	Pages                int
	Panel                string // URL of the picture; "" if there is none
	NoPanel              string // the reason why there is none
	Width, Height        int    // size of the picture
	Open, Close          string // URLs; Close asks first, and returns to the page that lists the session
}

func (w *Web) listSessions(c *call) error {
	return w.showSessions(c, sessionsPage{}, sessions.Listing{Limit: listedSessions}, sessionsPath)
}

func (w *Web) listProjectSessions(c *call) error {
	nav := c.projectNav("sessions")
	return w.showSessions(c, sessionsPage{Nav: &nav},
		sessions.Listing{Project: c.project.ID, Limit: listedSessions}, nav.Path+"/sessions")
}

// showSessions lists the sessions after ?after=. path is the path of the page itself.
func (w *Web) showSessions(c *call, page sessionsPage, l sessions.Listing, path string) error {
	l.After = c.URL.Query().Get("after")
	at := func(position string) string {
		if position == "" {
			return path
		}
		return path + "?after=" + url.QueryEscape(position)
	}
	cards, err := w.sessionCards(c, l, at(l.After))
	if err != nil {
		return err
	}
	page.Done, page.Sessions = c.notice(), cards
	if l.After != "" {
		page.First = path
	}
	if cards.Next != "" {
		page.Next = at(cards.Next)
	}
	return w.render(c, http.StatusOK, "dashboard_sessions", page)
}

// sessionCards lists open sessions for a page.
func (w *Web) sessionCards(c *call, l sessions.Listing, page string) (cards sessionCards, err error) {
	list, next, err := w.Dashboard.Sessions.Page(c.Context(), c.account.ID, l)
	if err != nil || len(list) == 0 {
		return cards, err
	}
	all, err := w.Dashboard.Projects.List(c.Context(), c.account.ID)
	if err != nil {
		return cards, err
	}
	names := map[string]string{}
	for _, p := range all {
		names[p.ID] = p.DisplayName
	}
	cards.Next = next
	for _, s := range list {
		row := w.newSessionRow(s, page)
		row.ProjectName = cmp.Or(names[s.Project], row.ProjectName)
		cards.List = append(cards.List, row)
	}
	return cards, nil
}

func (w *Web) newSessionRow(s sessions.Session, page string) sessionRow {
	path := sessionsPath + "/" + url.PathEscape(s.ID)
	row := sessionRow{
		ID: s.ID, Model: s.DeviceModel, Platform: platformName(s.Platform), Project: s.Project,
		ProjectPath: projectPath(s.Project), ProjectName: projects.DefaultName(s.Project),
		Age: "Opened " + ago(s.CreatedAt, w.Now()), Created: showTime(s.CreatedAt),
		Open: "/s/" + url.PathEscape(s.ID), Close: path + "/close?page=" + url.QueryEscape(page),
	}
	if model, ok := glasses.Model(s.DeviceModel); ok {
		row.Model = model.Name
		switch {
		case model.Panel == nil:
			row.NoPanel = "These glasses have no display"
		case s.LastSeq == 0:
			row.NoPanel = "Nothing shown yet"
		default:
			row.Panel, row.Width, row.Height = path+"/panel", model.Panel.Width, model.Panel.Height
		}
	}
	live := w.Dashboard.Sessions.Attached(s.ID)
	row.Pages = live.Pages
	for _, app := range live.Apps {
		row.Apps = append(row.Apps, printable(app.Name))
	}
	return row
}

func (w *Web) closeSimulatorPage(c *call) error {
	open, _, err := w.Dashboard.Sessions.Shown(c.Context(), c.account.ID, c.PathValue("session"))
	if err != nil {
		return err
	}
	row, back := w.newSessionRow(open, ""), sessionsPageOf(open.Project, c.URL.Query().Get("page"))
	name := row.ProjectName
	if p, err := w.Dashboard.Projects.Get(c.Context(), c.account.ID, open.Project); err == nil {
		name = p.DisplayName
	}
	text := []string{"Its event log is deleted for good, and its simulator page stops."}
	if len(row.Apps) > 0 {
		text = append(text, "An app is attached now: "+strings.Join(row.Apps, ", ")+". It is disconnected.")
	}
	return w.confirm(c, confirmation{
		Nav: "sessions", Title: "Close the session of " + name + " on " + row.Model + "?", Text: text,
		Action: sessionsPath + "/" + url.PathEscape(open.ID) + "/close", Hidden: map[string]string{"page": back},
		Label: "Close", Back: back, Instead: "Keep it open",
	})
}

// closeSimulator ends a session, and returns to the page that the user came from.
func (w *Web) closeSimulator(c *call) error {
	closed, err := w.Dashboard.Sessions.Close(c.Context(), c.account.ID, c.PathValue("session"))
	if err != nil {
		return err
	}
	return c.done(nil, sessionsPageOf(closed.Project, c.PostFormValue("page")), "session-closed")
}

// sessionsPageOf returns the page that the user came from, with its position in the list, if it lists sessions of the
// project. Otherwise it returns the page of all sessions.
func sessionsPageOf(project, from string) string {
	path, query, _ := strings.Cut(from, "?")
	if own := projectPath(project); !slices.Contains([]string{"/account", sessionsPath, own, own + "/sessions"}, path) {
		return sessionsPath
	}
	values, err := url.ParseQuery(query)
	if after := values.Get("after"); err == nil && after != "" {
		return path + "?after=" + url.QueryEscape(after)
	}
	return path
}
