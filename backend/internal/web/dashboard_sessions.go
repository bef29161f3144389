package web

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/glasses"
)

const (
	sessionsPath   = "/account/sessions"
	listedSessions = 12
	// projectSessions is how many sessions the page of a project shows; the others are on its page of sessions.
	projectSessions = 3
)

// sessionsPage is the data of the template "dashboard_sessions": all open sessions, or those of one project.
type sessionsPage struct {
	Done     *notice
	Nav      *projectNav // nil for the account's page
	Sessions sessionCards
	Next     string // URL of the sessions that follow; "" if there are none
	First    string // URL of the newest sessions; "" if these are the newest
}

// sessionCards is the data of the template "session-cards".
type sessionCards struct {
	List []sessionRow
	More bool   // whether further open sessions follow
	CSRF string // for the template "csrf"
}

// sessionRow is one open session. printable sanitizes what apps report about themselves.
type sessionRow struct {
	ID, Model, Platform  string
	Project, ProjectPath string
	ProjectName          string
	Age                  string
	Created              shownTime
	Apps                 []string
	Pages                int
	Panel                string // URL of the picture; "" if there is none
	NoPanel              string // why there is none
	Width, Height        int    // of the picture
	Open, Close          string // URLs
	Page                 string // the page that Close returns to
}

func (w *Web) listSessions(c *call) error {
	return w.showSessions(c, sessionsPage{}, sessions.Listing{Limit: listedSessions}, sessionsPath)
}

func (w *Web) listProjectSessions(c *call) error {
	nav := c.projectNav("sessions")
	return w.showSessions(c, sessionsPage{Nav: &nav},
		sessions.Listing{Project: c.project.ID, Limit: listedSessions}, nav.Path+"/sessions")
}

// showSessions lists the sessions after ?after=. path is the page's own.
func (w *Web) showSessions(c *call, page sessionsPage, l sessions.Listing, path string) error {
	l.After = c.URL.Query().Get("after")
	cards, err := w.sessionCards(c, l, path)
	if err != nil {
		return err
	}
	page.Done, page.Sessions = c.notice(), cards
	if l.After != "" {
		page.First = path
	}
	if cards.More {
		page.Next = path + "?after=" + url.QueryEscape(cards.List[len(cards.List)-1].ID)
	}
	return w.render(c, http.StatusOK, "dashboard_sessions", page)
}

// sessionCards lists open sessions for a page.
func (w *Web) sessionCards(c *call, l sessions.Listing, page string) (cards sessionCards, err error) {
	list, more, err := w.Dashboard.Sessions.Page(c.Context(), c.account.ID, l)
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
	cards = sessionCards{More: more, CSRF: w.csrfToken(c)}
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
		Open: "/s/" + url.PathEscape(s.ID), Close: path + "/close", Page: page,
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

// closeSimulator ends a session, and returns to the page whose button was pressed.
func (w *Web) closeSimulator(c *call) error {
	closed, err := w.Dashboard.Sessions.Close(c.Context(), c.account.ID, c.PathValue("session"))
	if err != nil {
		return err
	}
	page := sessionsPath
	if from := c.PostFormValue("page"); from == "/account" || from == projectPath(closed.Project) ||
		strings.TrimSuffix(from, "/sessions") == projectPath(closed.Project) {
		page = from
	}
	return c.done(nil, page, "session-closed")
}
