package web

import (
	"cmp"
	"errors"
	"slices"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
)

// projectPage is the data of the template "dashboard_project".
type projectPage struct {
	formErrors
	Done      *notice
	Nav       projectNav
	Project   projects.Project
	Created   shownTime
	Active    shownTime
	Name      string // name as entered
	Platforms []choice
	Keys      []keyRow
	Revoked   []keyRow
	KeyName   string
	Spent     creditLine
	Others    []projects.Project // projects that it can be merged into
	State     projectState
}

// choice is a checkbox or a radio button.
type choice struct {
	ID, Label, About string
	With             string // IDs of the compatible choices of another field, separated by spaces; "" for all
	On               bool
	Off              bool // it cannot be chosen now; About explains why
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

// showProject adds the data that does not come from the forms, and renders the page.
func (w *Web) showProject(c *call, page projectPage) error {
	keys, err := w.Dashboard.Projects.Keys(c.Context(), c.account.ID, c.project.ID)
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
	if page.State, err = w.projectState(c, keys); err != nil {
		return err
	}
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
