package web

import (
	"errors"
	"net/url"
	"slices"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/gateway"
)

// credentialsPage is the data of the template "dashboard_credentials". No field contains a credential's value.
type credentialsPage struct {
	formErrors
	Done       *notice
	Nav        projectNav
	Configured bool
	List       []credentialRow
}

type credentialRow struct {
	credentials.Credential
	At, Tested shownTime
	Result     string // result of the last test
	Path       string
	Open       bool // whether the form to replace the key is open
	Use        credentialUse
	Gateway    string // page on which the project's owner chooses the key source
}

// credentialUse describes the use of a key.
type credentialUse struct {
	Text      string
	Waiting   bool // calls could be paid with it, but are paid with credit
	Missing   bool // calls need it, and it is not set
	NotNeeded bool // no call can use it, and it is not set
}

var testResults = map[string]string{
	credentials.TestOK: "accepted by the provider", credentials.TestRefused: "refused by the provider",
	credentials.TestUnreachable: "the provider could not be reached",
}

func credentialsPath(project string) string { return projectPath(project) + "/credentials" }

func (w *Web) credentials(c *call) error { return w.showCredentials(c, formErrors{}) }

func (w *Web) showCredentials(c *call, f formErrors) error {
	list, err := w.Dashboard.Credentials.Status(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	use, err := w.credentialUses(c, c.project.ID)
	if err != nil {
		return err
	}
	f.ToTop = true
	page := credentialsPage{formErrors: f, Done: c.notice(), Nav: c.projectNav("credentials"),
		Configured: w.Dashboard.Credentials.Configured()}
	for _, one := range list {
		page.List = append(page.List, credentialRow{
			Credential: one, At: showTime(one.SetAt), Tested: showTime(one.TestedAt), Result: testResults[one.TestResult],
			Path: credentialsPath(c.project.ID) + "/" + url.PathEscape(one.Provider.ID),
			Open: f.Error("value-"+one.Provider.ID) != "", Use: use(one),
			Gateway: gatewayPath(c.project.ID) + "#source",
		})
	}
	return w.render(c, f.status(), "dashboard_credentials", page)
}

// namedModels is the number of models that a text names. Any further models are only counted.
const namedModels = 3

// credentialUses returns a function that describes the actual or possible use of a project's key.
func (w *Web) credentialUses(c *call, project string) (func(credentials.Credential) credentialUse, error) {
	all, err := w.Dashboard.Models.Available(c.Context(), gateway.Caller{Account: c.account.ID, Project: project})
	if err != nil {
		return nil, err
	}
	source, err := w.Dashboard.KeySources.KeySource(c.Context(), c.account.ID, project)
	return func(one credentials.Credential) credentialUse {
		var names []string
		for _, a := range all {
			if takesKeys(a, one.Provider) && a.Model.Why == "" && !slices.Contains(names, a.Model.Name) {
				names = append(names, a.Model.Name)
			}
		}
		if len(names) > namedModels {
			names = append(names[:namedModels], count(len(names)-namedModels, "other model"))
		}
		calls, own := "your app's calls to "+inWords(names), source == gateway.KeySourceOwn
		switch {
		case len(names) == 0 && one.Set:
			return credentialUse{Text: "Nothing: no model of this server takes your own key of " + one.Provider.Name + "."}
		case len(names) == 0:
			return credentialUse{NotNeeded: true,
				Text: "No model of this server takes your own key of " + one.Provider.Name + ", so you need none."}
		case own && one.Set:
			return credentialUse{Text: "It pays for " + calls + ". " + one.Provider.Name + " bills you."}
		case own:
			return credentialUse{Missing: true, Text: "Missing: this project pays with own keys, and needs this one for " + calls + "."}
		case one.Set:
			return credentialUse{Waiting: true, Text: "Nothing yet: your credit pays. It could pay for " + calls + "."}
		}
		return credentialUse{Text: "It could pay for " + calls + ", in place of your credit."}
	}, err
}

func (w *Web) setCredential(c *call) error {
	provider := c.PathValue("provider")
	err := w.Dashboard.Credentials.Set(c.Context(), c.account.ID, c.project.ID, provider, c.PostFormValue("value"), "",
		audit.Person())
	var invalid *credentials.InvalidError
	var f formErrors
	switch {
	case errors.Is(err, credentials.ErrNotConfigured):
		f.Problem = "Nothing was stored. Ask the operator of this backend to set a key to encrypt credentials with."
	case errors.As(err, &invalid):
		f.add("value-"+provider, invalid.Message)
	default:
		return c.done(err, credentialsPath(c.project.ID), "credential-set")
	}
	return w.showCredentials(c, f)
}

func (w *Web) testCredential(c *call) error {
	result, err := w.Dashboard.Credentials.Test(c.Context(), c.account.ID, c.project.ID, c.PathValue("provider"),
		audit.Person())
	if w.isUnreadable(c, err) {
		result, err = "impossible", nil
	}
	return c.done(err, credentialsPath(c.project.ID), "test-"+result)
}

// isUnreadable reports whether a credential could not be tested because the backend lacks the key to decrypt it.
func (w *Web) isUnreadable(c *call, err error) bool {
	var missing *credentials.MissingKeyError
	if !errors.Is(err, credentials.ErrNotConfigured) && !errors.As(err, &missing) {
		return false
	}
	w.Log.ErrorContext(c.Context(), "failed to test credential", "provider", c.PathValue("provider"), "err", err)
	return true
}

func (w *Web) removeCredentialPage(c *call) error {
	list, err := w.Dashboard.Credentials.Status(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(one credentials.Credential) bool {
		return one.Set && one.Provider.ID == c.PathValue("provider")
	})
	if i < 0 {
		return errNotFound
	}
	name, back := list[i].Provider.Name, credentialsPath(c.project.ID)
	return w.confirm(c, confirmation{
		Nav: "projects", Title: "Remove the " + name + " key of " + c.project.DisplayName + "?",
		Text: []string{"The stored key " + list[i].Hint + " is deleted here. " +
			"It still works at " + name + " until you revoke it there."},
		Action: back + "/" + url.PathEscape(list[i].Provider.ID) + "/remove", Label: "Remove",
		Back: back, Instead: "Keep it",
	})
}

func (w *Web) removeCredential(c *call) error {
	err := w.Dashboard.Credentials.Remove(c.Context(), c.account.ID, c.project.ID, c.PathValue("provider"), audit.Person())
	return c.done(err, credentialsPath(c.project.ID), "credential-gone")
}
