package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
)

// listedRevoked limits the revoked keys listed on a page.
const listedRevoked = 20

// newKeyText is the text of the page that asks for a proof before a key is created.
const newKeyText = "The next page shows a new key of the project, once."

type keyRow struct {
	projects.KeyInfo
	Created, Used, Revoked shownTime
	Path                   string
}

func (c *call) keyRow(k projects.KeyInfo) keyRow {
	path := projectPath(c.project.ID) + "/keys/" + url.PathEscape(k.ID)
	return keyRow{k, showTime(k.CreatedAt), showTime(k.LastUsedAt), showTime(k.RevokedAt), path}
}

// newKeyPage is the data of the template "dashboard_key", which shows a key once.
type newKeyPage struct {
	Nav     projectNav
	Name    string
	Key     projects.Key
	Rotated bool
}

// mintKey responds with the key itself. The key appears on no other page and in no URL, and is not stored.
func (w *Web) mintKey(c *call) error {
	name := c.PostFormValue("name")
	k, err := w.Dashboard.Projects.MintKey(c.Context(), c.account.ID, c.project.ID, name, audit.Person())
	page := newProjectPage(c.project)
	page.KeyName = name
	var invalid *projects.InvalidError
	switch {
	case errors.As(err, &invalid):
		page.add("key-name", sentence(invalid.Message))
	case errors.Is(err, projects.ErrTooManyKeys):
		page.add("key-name", "Revoke a key first: this project has the maximum number.")
	case err != nil:
		return err
	default:
		return w.render(c, http.StatusOK, "dashboard_key", newKeyPage{Nav: c.projectNav(""), Name: name, Key: k})
	}
	return w.showProject(c, page)
}

// key finds the live key named by {key} in the path.
func (w *Web) key(c *call) (keyRow, error) {
	keys, err := w.Dashboard.Projects.Keys(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return keyRow{}, err
	}
	for _, k := range keys {
		if k.ID == c.PathValue("key") && k.RevokedAt.IsZero() {
			return c.keyRow(k), nil
		}
	}
	return keyRow{}, errNotFound
}

// confirmKey asks for confirmation of an action on the key named by {key} in the path.
func (w *Web) confirmKey(c *call, action, verb string, text func(keyRow) []string) error {
	k, err := w.key(c)
	if err != nil {
		return err
	}
	return w.confirm(c, confirmation{
		Nav: "projects", Title: verb + " the key " + k.Name + "?", Text: text(k),
		Action: k.Path + "/" + action, Label: verb + " the key", Back: projectPath(c.project.ID), Instead: "Keep it",
	})
}

func (w *Web) rotateKeyPage(c *call) error {
	return w.confirmKey(c, "rotate", "Rotate", func(k keyRow) []string {
		return []string{
			"You get a new key, and the one that ends in " + k.Hint + " stops working at that moment.",
			"Builds with the old key are refused until they have the new one. " +
				"To change over without a gap, make a second key first and revoke this one later.",
		}
	})
}

func (w *Web) rotateKey(c *call) error {
	old, err := w.key(c)
	if err != nil {
		return err
	}
	k, err := w.Dashboard.Projects.RotateKey(c.Context(), c.account.ID, c.project.ID, old.ID, audit.Person())
	if err != nil {
		return err
	}
	return w.render(c, http.StatusOK, "dashboard_key",
		newKeyPage{Nav: c.projectNav(""), Name: old.Name, Key: k, Rotated: true})
}

func (w *Web) revokeKeyPage(c *call) error {
	return w.confirmKey(c, "revoke", "Revoke", func(k keyRow) []string {
		return []string{"The key that ends in " + k.Hint + " stops working permanently from its next use on. " +
			"Builds with it are refused from then on."}
	})
}

func (w *Web) revokeKey(c *call) error {
	err := w.Dashboard.Projects.RevokeKey(c.Context(), c.account.ID, c.project.ID, c.PathValue("key"), audit.Person())
	return c.done(err, projectPath(c.project.ID)+"#keys", "revoked-key")
}
