package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
)

// listedProjects limits the projects listed on one page; there may be many more.
const listedProjects = 100

// projectRow is a project in a list.
type projectRow struct {
	projects.Project
	Path   string
	Active shownTime
}

func projectRows(list []projects.Project) []projectRow {
	rows := make([]projectRow, len(list))
	for i, p := range list {
		rows[i] = projectRow{p, projectPath(p.ID), showTime(p.LastActiveAt)}
	}
	return rows
}

func (w *Web) listProjects(c *call) error {
	list, err := w.Dashboard.Projects.List(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	page := struct {
		Done     *notice
		Projects []projectRow
		Backend  string
		More     string // URL of the next projects; "" if there are none
		First    string // URL of the first projects; "" if these are the first
	}{Done: c.notice(), Backend: w.SiteURL}
	if after := c.URL.Query().Get("after"); after != "" {
		page.First = "/account/projects"
		list = list[1+slices.IndexFunc(list, func(p projects.Project) bool { return p.ID == after }):]
	}
	if len(list) > listedProjects {
		list = list[:listedProjects]
		page.More = "/account/projects?after=" + url.QueryEscape(list[listedProjects-1].ID)
	}
	page.Projects = projectRows(list)
	return w.render(c, http.StatusOK, "dashboard_projects", page)
}

// projectPage is the data of the template "dashboard_project".
type projectPage struct {
	formErrors
	Done      *notice
	Nav       projectNav
	Project   projects.Project
	Created   shownTime
	Active    shownTime
	Name      string // as entered
	Platforms []choice
	Keys      []keyRow
	Revoked   []keyRow
	KeyName   string
	Spent     creditLine
	Others    []projects.Project // projects that it can be merged into
}

// choice is a checkbox or a radio button.
type choice struct {
	ID, Label, About string
	With             string // ids of the choices of another field that it goes with, separated by spaces; "" for all
	On               bool
	Off              bool // it cannot be chosen now; About says why
}

var platformNames = map[string]string{"ios": "iOS", "android": "Android", "web": "Web", "desktop": "Desktop"}

func platformName(id string) string { return cmp.Or(platformNames[id], id) }

func platformChoices(on []string) []choice {
	var all []choice
	for _, id := range projects.Platforms() {
		all = append(all, choice{ID: id, Label: platformName(id), On: slices.Contains(on, id)})
	}
	return all
}

func newProjectPage(p projects.Project) projectPage {
	return projectPage{Name: p.DisplayName, Platforms: platformChoices(p.Platforms)}
}

func (w *Web) project(c *call) error { return w.showProject(c, newProjectPage(c.project)) }

// showProject adds the content of the page other than its forms.
func (w *Web) showProject(c *call, page projectPage) error {
	keys, err := w.Dashboard.Keys.Keys(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	all, err := w.Dashboard.Projects.List(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	if page.Spent, err = w.projectLine(c); err != nil {
		return err
	}
	page.Done, page.Nav, page.Project = c.notice(), c.projectNav(""), c.project
	page.Created, page.Active = showTime(c.project.CreatedAt), showTime(c.project.LastActiveAt)
	page.Others = slices.DeleteFunc(slices.Clone(all), func(p projects.Project) bool { return p.ID == c.project.ID })
	for _, k := range keys {
		row := c.keyRow(k)
		if k.RevokedAt.IsZero() {
			page.Keys = append(page.Keys, row)
		} else if len(page.Revoked) < listedRevoked {
			page.Revoked = append(page.Revoked, row)
		}
	}
	return w.render(c, page.status(), "dashboard_project", page)
}

func (w *Web) changeProject(c *call) error {
	name, platforms := c.PostFormValue("name"), c.PostForm["platform"]
	_, err := w.Dashboard.Projects.Update(c.Context(), c.account.ID, c.project.ID, name, platforms, audit.Person())
	var invalid *projects.InvalidError
	if errors.As(err, &invalid) {
		page := projectPage{Name: name, Platforms: platformChoices(platforms)}
		page.add("name", sentence(invalid.Message))
		return w.showProject(c, page)
	}
	return c.done(err, projectPath(c.project.ID), "saved")
}
