package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/projects"
)

// credentialsPage is what the template "dashboard_credentials" shows. No field holds a value.
type credentialsPage struct {
	formErrors
	Done       *notice
	Nav        projectNav
	Configured bool
	List       []credentialRow
}

type credentialRow struct {
	credentials.Credential
	At, Tested stamp
	Result     string // of the last test, in words
	Path       string
	Open       bool // the form to replace it
}

var testWords = map[string]string{
	credentials.TestOK: "taken by the provider", credentials.TestRefused: "refused by the provider",
	credentials.TestUnreachable: "the provider could not be reached",
}

func credentialsPath(p projects.Project) string { return projectPath(p.ID) + "/credentials" }

func (w *Web) credentials(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	return w.showCredentials(rw, r, a, p, formErrors{})
}

func (w *Web) showCredentials(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project, trouble formErrors) error {
	list, err := w.Dashboard.Credentials.Status(r.Context(), a.ID, p.ID)
	if err != nil {
		return err
	}
	page := credentialsPage{formErrors: trouble, Done: noticeOf(r), Nav: navOf(p, "credentials"), Configured: w.Dashboard.Credentials.Configured()}
	for _, c := range list {
		page.List = append(page.List, credentialRow{
			Credential: c, At: at(c.SetAt), Tested: at(c.TestedAt), Result: testWords[c.TestResult],
			Path: credentialsPath(p) + "/" + url.PathEscape(c.Provider.ID), Open: trouble.Error("value-"+c.Provider.ID) != "",
		})
	}
	return w.render(rw, r, statusOf(trouble), "dashboard_credentials", page)
}

func (w *Web) setCredential(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	provider := r.PathValue("provider")
	err := w.Dashboard.Credentials.Set(r.Context(), a.ID, p.ID, provider, r.PostFormValue("value"), "", audit.Person())
	var invalid *credentials.InvalidError
	var trouble formErrors
	switch {
	case err == nil:
		return done(rw, r, credentialsPath(p), "credential-set")
	case errors.Is(err, credentials.ErrUnknownProvider):
		return errNotFound
	case errors.Is(err, credentials.ErrNotConfigured):
		trouble.Problem = "Nothing was stored: this backend has no key to encrypt credentials with. Ask whoever runs it."
	case errors.As(err, &invalid):
		trouble.wrong("value-"+provider, invalid.Message)
	default:
		return err
	}
	return w.showCredentials(rw, r, a, p, trouble)
}

func (w *Web) testCredential(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	result, err := w.Dashboard.Credentials.Test(r.Context(), a.ID, p.ID, r.PathValue("provider"), audit.Person())
	var missing *credentials.MissingKeyError
	switch {
	case errors.Is(err, credentials.ErrNotSet), errors.Is(err, credentials.ErrUnknownProvider):
		return errNotFound
	case errors.Is(err, credentials.ErrNotConfigured), errors.As(err, &missing):
		w.Log.ErrorContext(r.Context(), "testing a credential", "provider", r.PathValue("provider"), "error", err)
		return done(rw, r, credentialsPath(p), "test-impossible")
	case err != nil:
		return err
	}
	return done(rw, r, credentialsPath(p), "test-"+result)
}

func (w *Web) removeCredentialPage(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	list, err := w.Dashboard.Credentials.Status(r.Context(), a.ID, p.ID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(c credentials.Credential) bool { return c.Set && c.Provider.ID == r.PathValue("provider") })
	if i < 0 {
		return errNotFound
	}
	c := list[i]
	return w.confirm(rw, r, confirmation{
		Nav: "projects", Title: "Remove the " + c.Provider.Name + " key of " + p.DisplayName + "?",
		Text:   []string{"The stored key " + c.Hint + " is forgotten here. At " + c.Provider.Name + " it goes on working until you revoke it there."},
		Action: credentialsPath(p) + "/" + url.PathEscape(c.Provider.ID) + "/remove", Label: "Remove", Danger: true, Back: credentialsPath(p), Instead: "Keep it",
	})
}

func (w *Web) removeCredential(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	err := w.Dashboard.Credentials.Remove(r.Context(), a.ID, p.ID, r.PathValue("provider"), audit.Person())
	if errors.Is(err, credentials.ErrNotSet) {
		return errNotFound
	}
	if err != nil {
		return err
	}
	return done(rw, r, credentialsPath(p), "credential-gone")
}
