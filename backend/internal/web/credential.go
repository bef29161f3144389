package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
)

// CredentialLinks is what the page to paste a credential on needs. Errors are package credentials'.
type CredentialLinks interface {
	Link(ctx context.Context, account, linkID string) (credentials.Link, error)
	Set(ctx context.Context, account, project, provider, value, linkID string, by audit.Actor) error
	Status(ctx context.Context, account, project string) ([]credentials.Credential, error)
	Test(ctx context.Context, account, project, provider string, by audit.Actor) (string, error)
}

// credentialPage is what the template "credential" shows. There is no field for the value: it never goes back.
type credentialPage struct {
	Project  string
	Provider credentials.Provider
	AskedBy  string
	Until    string
	Problem  string
}

// savedPage is what the template "credential_saved" shows.
type savedPage struct {
	credentials.Credential
	Project string
	TestURL string
	AllURL  string
	Problem string
}

// mountCredential adds the page that a paste link leads to, and what follows it.
func (w *Web) mountCredential(mux *http.ServeMux) {
	if w.CredentialLinks == nil {
		return
	}
	mux.Handle("GET /account/credentials/{linkId}", w.own(w.credentialForm))
	mux.Handle("POST /account/credentials/{linkId}", w.own(w.credentialSave))
	mux.Handle("GET /account/credentials/{project}/{provider}", w.own(w.credentialSaved))
	mux.Handle("POST /account/credentials/{project}/{provider}/test", w.own(w.credentialTest))
}

func (w *Web) credentialForm(rw http.ResponseWriter, r *http.Request, a Account) error {
	l, err := w.CredentialLinks.Link(r.Context(), a.ID, r.PathValue("linkId"))
	if err != nil {
		return w.credentialTrouble(rw, r, l, err)
	}
	return w.showCredential(rw, r, http.StatusOK, l, "")
}

func (w *Web) showCredential(rw http.ResponseWriter, r *http.Request, status int, l credentials.Link, problem string) error {
	return w.render(rw, r, status, "credential", credentialPage{Project: l.Project, Provider: l.Provider, AskedBy: l.AskedBy,
		Until: l.ExpiresAt.UTC().Format("15:04") + " UTC", Problem: problem})
}

func (w *Web) credentialSave(rw http.ResponseWriter, r *http.Request, a Account) error {
	id := r.PathValue("linkId")
	l, err := w.CredentialLinks.Link(r.Context(), a.ID, id)
	if err == nil {
		err = w.CredentialLinks.Set(r.Context(), a.ID, l.Project, l.Provider.ID, r.PostFormValue("value"), id, audit.Person())
	}
	if err != nil {
		return w.credentialTrouble(rw, r, l, err)
	}
	http.Redirect(rw, r, savedURL(l.Project, l.Provider.ID), http.StatusSeeOther)
	return nil
}

func savedURL(project, provider string) string {
	return "/account/credentials/" + url.PathEscape(project) + "/" + url.PathEscape(provider)
}

// credentialTrouble says what a person can do about err. A link that is unknown, over, used or another account's looks
// the same.
func (w *Web) credentialTrouble(rw http.ResponseWriter, r *http.Request, l credentials.Link, err error) error {
	var invalid *credentials.InvalidError
	switch {
	case errors.As(err, &invalid):
		return w.showCredential(rw, r, http.StatusUnprocessableEntity, l, invalid.Message)
	case errors.Is(err, credentials.ErrUnknownLink):
		return w.render(rw, r, http.StatusGone, "credential_gone", nil)
	case errors.Is(err, credentials.ErrNotConfigured):
		return w.showCredential(rw, r, http.StatusConflict, l, "This server cannot keep credentials: its operator has set no key to encrypt them with.")
	}
	return err
}

func (w *Web) credentialSaved(rw http.ResponseWriter, r *http.Request, a Account) error {
	return w.showSaved(rw, r, a, http.StatusOK, "")
}

func (w *Web) showSaved(rw http.ResponseWriter, r *http.Request, a Account, status int, problem string) error {
	project, provider := r.PathValue("project"), r.PathValue("provider")
	all, err := w.CredentialLinks.Status(r.Context(), a.ID, project)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.Provider.ID == provider && c.Set {
			return w.render(rw, r, status, "credential_saved", savedPage{Credential: c, Project: project, Problem: problem,
				TestURL: savedURL(project, provider) + "/test", AllURL: "/account/projects/" + url.PathEscape(project) + "/credentials"})
		}
	}
	return errNotFound
}

func (w *Web) credentialTest(rw http.ResponseWriter, r *http.Request, a Account) error {
	project, provider := r.PathValue("project"), r.PathValue("provider")
	_, err := w.CredentialLinks.Test(r.Context(), a.ID, project, provider, audit.Person())
	var missing *credentials.MissingKeyError
	switch {
	case errors.Is(err, credentials.ErrNotSet), errors.Is(err, credentials.ErrUnknownProvider):
		return errNotFound
	case errors.Is(err, credentials.ErrNotConfigured), errors.As(err, &missing):
		w.Log.ErrorContext(r.Context(), "testing a credential", "provider", provider, "error", err)
		return w.showSaved(rw, r, a, http.StatusConflict, "This server cannot open the key at present. Its operator has to put an encryption key back.")
	case err != nil:
		return err
	}
	http.Redirect(rw, r, savedURL(project, provider), http.StatusSeeOther)
	return nil
}
