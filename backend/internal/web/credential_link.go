package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
)

// credentialPage is the data of the template "credential". It has no field for the value, which is never sent back.
type credentialPage struct {
	Project  string
	Provider credentials.Provider
	AskedBy  string
	Until    string
	Problem  string
}

// savedPage is the data of the template "credential_saved".
type savedPage struct {
	credentials.Credential
	Project string
	At      shownTime
	Tested  shownTime
	Use     credentialUse
	TestURL string
	AllURL  string
	Problem string
}

// mountCredential adds the page for pasting a credential, and the pages that follow it.
func (w *Web) mountCredential(mux *http.ServeMux) {
	if w.Dashboard == nil {
		return
	}
	mux.Handle("GET /account/credentials/{linkId}", w.signedIn(w.pastePage))
	mux.Handle("POST /account/credentials/{linkId}", w.signedIn(w.paste))
	mux.Handle("GET /account/credentials/{project}/{provider}", w.signedIn(w.pastedPage))
	mux.Handle("POST /account/credentials/{project}/{provider}/test", w.signedIn(w.testPasted))
}

func (w *Web) pastePage(c *call) error {
	l, err := w.Dashboard.Credentials.Link(c.Context(), c.account.ID, c.PathValue("linkId"))
	if err != nil {
		return w.rejectPaste(c, l, err)
	}
	return w.showPaste(c, http.StatusOK, l, "")
}

func (w *Web) showPaste(c *call, status int, l credentials.Link, problem string) error {
	return w.render(c, status, "credential", credentialPage{
		Project: l.Project, Provider: l.Provider, AskedBy: l.AskedBy, Until: clockTime(l.ExpiresAt), Problem: problem,
	})
}

func (w *Web) paste(c *call) error {
	id := c.PathValue("linkId")
	l, err := w.Dashboard.Credentials.Link(c.Context(), c.account.ID, id)
	if err == nil {
		err = w.Dashboard.Credentials.Set(c.Context(), c.account.ID, l.Project, l.Provider.ID, c.PostFormValue("value"), id,
			audit.Person())
	}
	if err != nil {
		return w.rejectPaste(c, l, err)
	}
	return c.redirect(pastedPath(l.Project, l.Provider.ID))
}

func pastedPath(project, provider string) string {
	return "/account/credentials/" + url.PathEscape(project) + "/" + url.PathEscape(provider)
}

// rejectPaste responds identically to a link that is unknown, expired, used or meant for another account.
func (w *Web) rejectPaste(c *call, l credentials.Link, err error) error {
	var invalid *credentials.InvalidError
	switch {
	case errors.As(err, &invalid):
		return w.showPaste(c, http.StatusUnprocessableEntity, l, invalid.Message)
	case errors.Is(err, credentials.ErrUnknownLink):
		return w.render(c, http.StatusGone, "credential_gone", nil)
	case errors.Is(err, credentials.ErrNotConfigured):
		return w.showPaste(c, http.StatusConflict, l,
			"Ask the operator of this backend to set a key to encrypt credentials with. Without it nothing can be stored.")
	}
	return err
}

func (w *Web) pastedPage(c *call) error { return w.showPasted(c, http.StatusOK, "") }

func (w *Web) showPasted(c *call, status int, problem string) error {
	project, provider := c.PathValue("project"), c.PathValue("provider")
	all, err := w.Dashboard.Credentials.Status(c.Context(), c.account.ID, project)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Provider.ID == provider && one.Set {
			use, err := w.usedFor(c, project, one)
			if err != nil {
				return err
			}
			return w.render(c, status, "credential_saved", savedPage{
				Credential: one, Project: project, Problem: problem, Use: use,
				At: showTime(one.SetAt), Tested: showTime(one.TestedAt),
				TestURL: pastedPath(project, provider) + "/test", AllURL: credentialsPath(project),
			})
		}
	}
	return errNotFound
}

func (w *Web) usedFor(c *call, project string, one credentials.Credential) (credentialUse, error) {
	use, err := w.credentialUses(c, project)
	if err != nil {
		return credentialUse{}, err
	}
	return use(one), nil
}

func (w *Web) testPasted(c *call) error {
	project, provider := c.PathValue("project"), c.PathValue("provider")
	_, err := w.Dashboard.Credentials.Test(c.Context(), c.account.ID, project, provider, audit.Person())
	if w.isUnreadable(c, err) {
		return w.showPasted(c, http.StatusConflict,
			"Ask the operator of this backend to restore the encryption key. Without it your key cannot be read.")
	}
	if err != nil {
		return err
	}
	return c.redirect(pastedPath(project, provider))
}
