package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
)

// Bounds of what one page lists; there may be many more.
const (
	listedProjects = 100
	listedDead     = 20 // revoked keys
)

// projectRow is a project in a list.
type projectRow struct {
	projects.Project
	Path   string
	Active stamp
}

func projectRows(list []projects.Project) []projectRow {
	rows := make([]projectRow, len(list))
	for i, p := range list {
		rows[i] = projectRow{p, projectPath(p.ID), at(p.LastActiveAt)}
	}
	return rows
}

func (w *Web) projectList(rw http.ResponseWriter, r *http.Request, a Account) error {
	list, err := w.Dashboard.Projects.List(r.Context(), a.ID)
	if err != nil {
		return err
	}
	page := struct {
		Done     *notice
		Projects []projectRow
		Backend  string
		More     string // address of the next projects; empty: there are none
		First    string // address of the first ones; empty: these are
	}{Done: noticeOf(r), Backend: w.SiteURL}
	after := r.URL.Query().Get("after")
	if after != "" {
		page.First = "/account/projects"
		list = list[1+slices.IndexFunc(list, func(p projects.Project) bool { return p.ID == after }):]
	}
	if len(list) > listedProjects {
		list = list[:listedProjects]
		page.More = "/account/projects?after=" + url.QueryEscape(list[listedProjects-1].ID)
	}
	page.Projects = projectRows(list)
	return w.render(rw, r, http.StatusOK, "dashboard_projects", page)
}

// projectPage is what the template "dashboard_project" shows.
type projectPage struct {
	formErrors
	Done      *notice
	Nav       projectNav
	Project   projects.Project
	Created   stamp
	Active    stamp
	Name      string // as typed
	Platforms []choice
	Keys      []keyRow
	Dead      []keyRow // revoked
	KeyName   string
	Others    []projects.Project // that it could be merged into
}

// choice is a checkbox or a radio button.
type choice struct {
	ID, Label, About string
	On               bool
}

type keyRow struct {
	projects.KeyInfo
	Created, Used, Revoked stamp
	Path                   string
}

var platformNames = map[string]string{"ios": "iOS", "android": "Android", "web": "Web", "desktop": "Desktop"}

func platformName(id string) string {
	if name, ok := platformNames[id]; ok {
		return name
	}
	return id
}

func platformChoices(on []string) []choice {
	var all []choice
	for _, id := range projects.Platforms() {
		all = append(all, choice{ID: id, Label: platformName(id), On: slices.Contains(on, id)})
	}
	return all
}

func (w *Web) project(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	return w.showProject(rw, r, a, p, projectPage{Name: p.DisplayName, Platforms: platformChoices(p.Platforms)})
}

// showProject fills in what the page needs besides its forms.
func (w *Web) showProject(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project, page projectPage) error {
	keys, err := w.Dashboard.Keys.Keys(r.Context(), a.ID, p.ID)
	if err != nil {
		return err
	}
	all, err := w.Dashboard.Projects.List(r.Context(), a.ID)
	if err != nil {
		return err
	}
	page.Done, page.Nav, page.Project = noticeOf(r), navOf(p, ""), p
	page.Created, page.Active = at(p.CreatedAt), at(p.LastActiveAt)
	page.Others = slices.DeleteFunc(slices.Clone(all), func(other projects.Project) bool { return other.ID == p.ID })
	for _, k := range keys {
		row := keyRow{k, at(k.CreatedAt), at(k.LastUsedAt), at(k.RevokedAt), projectPath(p.ID) + "/keys/" + url.PathEscape(k.ID)}
		if k.RevokedAt.IsZero() {
			page.Keys = append(page.Keys, row)
		} else if len(page.Dead) < listedDead {
			page.Dead = append(page.Dead, row)
		}
	}
	return w.render(rw, r, statusOf(page.formErrors), "dashboard_project", page)
}

func (w *Web) changeProject(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	name, platforms := r.PostFormValue("name"), r.PostForm["platform"]
	_, err := w.Dashboard.Projects.Update(r.Context(), a.ID, p.ID, name, platforms, audit.Person())
	var invalid *projects.InvalidError
	if errors.As(err, &invalid) {
		page := projectPage{Name: name, Platforms: platformChoices(platforms)}
		page.wrong("name", sentence(invalid.Message))
		return w.showProject(rw, r, a, p, page)
	}
	if err != nil {
		return err
	}
	return done(rw, r, projectPath(p.ID), "saved")
}

// newKeyPage is what the template "dashboard_key" shows, once.
type newKeyPage struct {
	Nav     projectNav
	Name    string
	Key     projects.Key
	Rotated bool
}

// mintKey answers with the key itself: it is in no later page, no address and no store.
func (w *Web) mintKey(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	name := r.PostFormValue("name")
	k, err := w.Dashboard.Keys.MintKey(r.Context(), a.ID, p.ID, name, audit.Person())
	page := projectPage{Name: p.DisplayName, Platforms: platformChoices(p.Platforms), KeyName: name}
	var invalid *projects.InvalidError
	switch {
	case errors.As(err, &invalid):
		page.wrong("key-name", sentence(invalid.Message))
		return w.showProject(rw, r, a, p, page)
	case errors.Is(err, projects.ErrTooManyKeys):
		page.wrong("key-name", "This project has as many keys as it can have. Revoke one first.")
		return w.showProject(rw, r, a, p, page)
	case err != nil:
		return err
	}
	return w.render(rw, r, http.StatusOK, "dashboard_key", newKeyPage{Nav: navOf(p, ""), Name: name, Key: k})
}

// keyOf finds the live key {key} of the path.
func (w *Web) keyOf(r *http.Request, a Account, p projects.Project) (keyRow, error) {
	keys, err := w.Dashboard.Keys.Keys(r.Context(), a.ID, p.ID)
	if err != nil {
		return keyRow{}, err
	}
	for _, k := range keys {
		if k.ID == r.PathValue("key") && k.RevokedAt.IsZero() {
			return keyRow{KeyInfo: k, Path: projectPath(p.ID) + "/keys/" + url.PathEscape(k.ID)}, nil
		}
	}
	return keyRow{}, errNotFound
}

func (w *Web) rotateKeyPage(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	k, err := w.keyOf(r, a, p)
	if err != nil {
		return err
	}
	return w.confirm(rw, r, confirmation{
		Nav: "projects", Title: "Rotate the key " + k.Name + "?",
		Text: []string{"You get a new key, and the one that ends in " + k.Hint + " stops working at that moment.",
			"Builds that carry the old key are refused until they carry the new one. To change over without a gap, mint a second key first and revoke this one later."},
		Action: k.Path + "/rotate", Label: "Rotate the key", Danger: true, Back: projectPath(p.ID), Instead: "Keep it",
	})
}

func (w *Web) rotateKey(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	was, err := w.keyOf(r, a, p)
	if err != nil {
		return err
	}
	k, err := w.Dashboard.Keys.RotateKey(r.Context(), a.ID, p.ID, was.ID, audit.Person())
	if errors.Is(err, projects.ErrNoKey) {
		return errNotFound
	}
	if err != nil {
		return err
	}
	return w.render(rw, r, http.StatusOK, "dashboard_key", newKeyPage{Nav: navOf(p, ""), Name: was.Name, Key: k, Rotated: true})
}

func (w *Web) revokeKeyPage(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	k, err := w.keyOf(r, a, p)
	if err != nil {
		return err
	}
	return w.confirm(rw, r, confirmation{
		Nav: "projects", Title: "Revoke the key " + k.Name + "?",
		Text:   []string{"The key that ends in " + k.Hint + " stops working at its next use, for good. Builds that carry it are refused from then on."},
		Action: k.Path + "/revoke", Label: "Revoke the key", Danger: true, Back: projectPath(p.ID), Instead: "Keep it",
	})
}

func (w *Web) revokeKey(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	err := w.Dashboard.Keys.RevokeKey(r.Context(), a.ID, p.ID, r.PathValue("key"), audit.Person())
	if errors.Is(err, projects.ErrNoKey) {
		return errNotFound
	}
	if err != nil {
		return err
	}
	return done(rw, r, projectPath(p.ID)+"#keys", "revoked-key")
}
