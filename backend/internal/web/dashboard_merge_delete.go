package web

import (
	"strings"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
)

// mergeText is the text of the page that asks for a proof before a merge, which may give agents more access.
const mergeText = "What the project has moves to the other one, with its agent access. This cannot be undone."

// mergePage asks for confirmation before a project is merged into another project of the account, named by ?into=.
func (w *Web) mergePage(c *call) error {
	into, err := w.mergeTarget(c, c.URL.Query().Get("into"))
	if err != nil {
		return err
	}
	from := c.project.ID
	return w.confirm(c, confirmation{
		Nav: "projects", Title: "Merge " + from + " into " + into.ID + "?",
		Text: []string{
			"Keys, simulator sessions, analytics and activity of " + from + " move to " + into.ID + ".",
			into.ID + " keeps its name and agent access. It also keeps its own assistant, credentials and connection page. " +
				"What it has not set comes from " + from + ". Of two spending caps the lower one stays, and own keys pay " +
				"for both if they paid for one. Everything else of " + from + " is deleted.",
			"The id " + from + " still works everywhere and means " + into.ID + ". This cannot be undone.",
		},
		Action: projectPath(from) + "/merge", Hidden: map[string]string{"into": into.ID},
		Label: "Merge", Back: projectPath(from), Instead: "Keep both",
	})
}

// mergeTarget finds the target of a merge. It reports the project itself as not found.
func (w *Web) mergeTarget(c *call, id string) (projects.Project, error) {
	into, err := w.Dashboard.Projects.Get(c.Context(), c.account.ID, id)
	if err == nil && into.ID == c.project.ID {
		return into, errNotFound
	}
	return into, err
}

func (w *Web) merge(c *call) error {
	into, err := w.mergeTarget(c, c.PostFormValue("into"))
	if err == nil {
		err = w.Dashboard.Projects.Merge(c.Context(), c.account.ID, c.project.ID, into.ID, audit.Person())
	}
	return c.done(err, projectPath(into.ID), "merged")
}

func confirmDelete(p projects.Project) confirmation {
	return confirmation{
		Nav: "projects", Title: "Delete " + p.DisplayName + "?",
		Text: []string{
			"This deletes the project with its keys, simulator sessions, assistant, credentials, connection page and " +
				"analytics, permanently.",
			"Shipped apps with its keys are no longer counted, and their connection page disappears. " +
				"The entries under Activity stay.",
		},
		Action: projectPath(p.ID) + "/delete", Label: "Delete the project",
		Expect: p.ID, Back: projectPath(p.ID), Instead: "Keep the project",
	}
}

func (w *Web) deletePage(c *call) error { return w.confirm(c, confirmDelete(c.project)) }

func (w *Web) deleteProject(c *call) error {
	if typed := c.PostFormValue("typed"); strings.TrimSpace(typed) != c.project.ID {
		page := confirmDelete(c.project)
		page.Typed = typed
		page.add("typed", "This is not the app id of the project.")
		return w.confirm(c, page)
	}
	err := w.Dashboard.Projects.Delete(c.Context(), c.account.ID, c.project.ID, audit.Person())
	return c.done(err, "/account/projects", "deleted")
}
