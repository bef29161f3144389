package web

import (
	"errors"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
)

// sentence makes an error's message a sentence for people.
func sentence(s string) string { return capital(strings.TrimRight(s, ".")) + "." }

func capital(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + s[n:]
}

// mergePage asks before a project becomes part of ?into=, another of the account's.
func (w *Web) mergePage(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	into, err := w.mergeInto(r, a, p, r.URL.Query().Get("into"))
	if err != nil {
		return err
	}
	return w.confirm(rw, r, confirmation{
		Nav: "projects", Title: "Merge " + p.ID + " into " + into.ID + "?",
		Text: []string{
			"Keys, simulator sessions, analytics and activity of " + p.ID + " move to " + into.ID + ".",
			"The name, the agent access, and of the assistant, the credentials and the connection page what " + into.ID + " has stay as they are there. What it has not set comes from " + p.ID + "; the rest of " + p.ID + " is dropped.",
			"The id " + p.ID + " goes on working everywhere and means " + into.ID + ". This cannot be taken back.",
		},
		Action: projectPath(p.ID) + "/merge", Hidden: map[string]string{"into": into.ID},
		Label: "Merge", Danger: true, Back: projectPath(p.ID), Instead: "Keep both",
	})
}

// mergeInto finds the other project; its absence and the project itself are not found alike.
func (w *Web) mergeInto(r *http.Request, a Account, p projects.Project, id string) (projects.Project, error) {
	into, err := w.Dashboard.Projects.Get(r.Context(), a.ID, id)
	if errors.Is(err, projects.ErrNotFound) || (err == nil && into.ID == p.ID) {
		return projects.Project{}, errNotFound
	}
	return into, err
}

func (w *Web) merge(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	into, err := w.mergeInto(r, a, p, r.PostFormValue("into"))
	if err != nil {
		return err
	}
	if err := w.Dashboard.Projects.Merge(r.Context(), a.ID, p.ID, into.ID, audit.Person()); err != nil {
		return err
	}
	return done(rw, r, projectPath(into.ID), "merged")
}

func deletion(p projects.Project) confirmation {
	return confirmation{
		Nav: "projects", Title: "Delete " + p.DisplayName + "?",
		Text: []string{
			"This removes the project with its keys, simulator sessions, assistant, credentials, connection page and analytics, for good.",
			"Shipped apps that carry its keys stop being counted, and their connection page vanishes. What stands under Activity stays.",
		},
		Action: projectPath(p.ID) + "/delete", Label: "Delete the project", Danger: true, Expect: p.ID, Back: projectPath(p.ID), Instead: "Keep the project",
	}
}

func (w *Web) deletePage(rw http.ResponseWriter, r *http.Request, _ Account, p projects.Project) error {
	return w.confirm(rw, r, deletion(p))
}

func (w *Web) deleteProject(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	if typed := r.PostFormValue("typed"); strings.TrimSpace(typed) != p.ID {
		c := deletion(p)
		c.Typed = typed
		c.wrong("typed", "This is not the app id of the project.")
		return w.confirm(rw, r, c)
	}
	if err := w.Dashboard.Projects.Delete(r.Context(), a.ID, p.ID, audit.Person()); err != nil {
		return err
	}
	return done(rw, r, "/account/projects", "deleted")
}
