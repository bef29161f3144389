package web

import (
	"net/http"
	"net/url"
	"time"

	"github.com/service-dev/service/backend/internal/projects"
)

// ownFunc is a page of the signed-in account a. Like pageFunc it may give up with an error before it writes.
type ownFunc func(rw http.ResponseWriter, r *http.Request, a Account) error

// projectFunc is a page of a project of the account.
type projectFunc func(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error

// own wraps every page below /account: whoever is not signed in goes to /signin first, and comes back to what was to be
// read. A form that was sent without being signed in is not sent again: it comes back to the dashboard. Here is also the
// limit of what an account may change, however many browsers it is signed in with.
func (w *Web) own(h func(rw http.ResponseWriter, r *http.Request, a Account) error) http.Handler {
	return w.page(func(rw http.ResponseWriter, r *http.Request) error {
		a, signedIn := currentAccount(r)
		reading := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case signedIn && !reading && w.changes.Take(a.ID) > 0:
			return w.sayTooMany(rw, r)
		case signedIn:
			return h(rw, r, a)
		}
		next := "/account"
		if reading {
			next = r.URL.RequestURI()
		}
		http.Redirect(rw, r, "/signin?next="+url.QueryEscape(next), http.StatusSeeOther)
		return nil
	})
}

// ofProject is own for the project {id} of the path. Missing and foreign ones are not found alike; one that was merged
// away leads to what it became part of.
func (w *Web) ofProject(h projectFunc) http.Handler {
	return w.own(func(rw http.ResponseWriter, r *http.Request, a Account) error {
		p, err := w.Dashboard.Projects.Get(r.Context(), a.ID, r.PathValue("id"))
		if err != nil {
			return err
		}
		if p.ID != r.PathValue("id") && r.Method == http.MethodGet {
			http.Redirect(rw, r, projectPath(p.ID), http.StatusSeeOther)
			return nil
		}
		return h(rw, r, a, p)
	})
}

// mountDashboard adds the pages below /account that are about projects, grants and the audit log.
func (w *Web) mountDashboard(mux *http.ServeMux) {
	if w.Dashboard == nil {
		return
	}
	const one = " /account/projects/{id}"
	for pattern, h := range map[string]ownFunc{
		"GET /account":                     w.overview,
		"GET /account/links/{link}/revoke": w.revokeInstallPage, "POST /account/links/{link}/revoke": w.revokeInstall,
		"GET /account/links/revoke-all": w.revokeInstallsPage, "POST /account/links/revoke-all": w.revokeInstalls,
		"GET /account/projects":   w.projectList,
		"GET /account/mcp-access": w.access, "POST /account/mcp-access": w.changeAccess,
		"GET /account/audit": w.activity, "POST /account/audit/{entry}/undo": w.undo,
	} {
		mux.Handle(pattern, w.own(h))
	}
	for pattern, h := range map[string]projectFunc{
		"GET" + one: w.project, "POST" + one: w.changeProject,
		"POST" + one + "/keys":             w.mintKey,
		"GET" + one + "/keys/{key}/rotate": w.rotateKeyPage, "POST" + one + "/keys/{key}/rotate": w.rotateKey,
		"GET" + one + "/keys/{key}/revoke": w.revokeKeyPage, "POST" + one + "/keys/{key}/revoke": w.revokeKey,
		"GET" + one + "/merge": w.mergePage, "POST" + one + "/merge": w.merge,
		"GET" + one + "/delete": w.deletePage, "POST" + one + "/delete": w.deleteProject,
		"GET" + one + "/assistant": w.assistant, "POST" + one + "/assistant": w.changeAssistant,
		"GET" + one + "/credentials":                    w.credentials,
		"POST" + one + "/credentials/{provider}":        w.setCredential,
		"POST" + one + "/credentials/{provider}/test":   w.testCredential,
		"GET" + one + "/credentials/{provider}/remove":  w.removeCredentialPage,
		"POST" + one + "/credentials/{provider}/remove": w.removeCredential,
		"GET" + one + "/connection-page":                w.connectionPage,
		"POST" + one + "/connection-page":               w.changeConnectionPage,
		"GET" + one + "/connection-page/file":           w.connectionPageFile,
	} {
		mux.Handle(pattern, w.ofProject(h))
	}
}

func projectPath(id string) string { return "/account/projects/" + url.PathEscape(id) }

// projectNav is the navigation among the pages of one project; the template "project-nav" shows it. Here is empty on the
// project's own page, else the page's last path segment.
type projectNav struct{ Path, ID, Name, Here string }

func navOf(p projects.Project, here string) projectNav {
	return projectNav{Path: projectPath(p.ID), ID: p.ID, Name: p.DisplayName, Here: here}
}

// stamp is a time as pages show it; the zero time has no Text.
type stamp struct{ ISO, Text string }

func at(t time.Time) stamp {
	if t.IsZero() {
		return stamp{}
	}
	t = t.UTC()
	return stamp{t.Format(time.RFC3339), t.Format("2 Jan 2006, 15:04 UTC")}
}

// confirmation is what the template "dashboard_confirm" asks before something that cannot be taken back. With Expect the
// person types that, in the field "typed".
type confirmation struct {
	formErrors
	Nav     string // for the template "account-nav"
	Title   string
	Text    []string
	Action  string // where the answer is posted
	Hidden  map[string]string
	Label   string // of the button
	Danger  bool
	Expect  string
	Typed   string
	Back    string
	Instead string // words of the way back
}

func (w *Web) confirm(rw http.ResponseWriter, r *http.Request, c confirmation) error {
	return w.render(rw, r, statusOf(c.formErrors), "dashboard_confirm", c)
}

// notice is a line that follows something done. The address carries its code only, so nobody can put words there.
type notice struct {
	Text string
	Bad  bool // it did not work
}

var notices = map[string]notice{
	"saved":            {Text: "Saved."},
	"unchanged":        {Text: "Nothing was different, so nothing was changed."},
	"access":           {Text: "Saved. It holds from the agent's next call on."},
	"revoked-key":      {Text: "The key is revoked. It stopped working."},
	"revoked-link":     {Text: "Revoked. The next call of that agent is refused until you link it again."},
	"revoked-links":    {Text: "All links are revoked. The next call of each agent is refused until you link it again."},
	"merged":           {Text: "Merged. The other id goes on working and leads here."},
	"deleted":          {Text: "The project is deleted."},
	"credential-set":   {Text: "The key is stored. Test it to see whether the provider takes it."},
	"credential-gone":  {Text: "The key is removed."},
	"test-ok":          {Text: "The provider takes the key."},
	"test-refused":     {Text: "The provider refuses the key. Copy it once more from the provider's site, or make a new one there.", Bad: true},
	"test-unreachable": {Text: "The provider could not be reached. This says nothing about the key; try again later.", Bad: true},
	"test-impossible":  {Text: "The key cannot be opened: this backend's own encryption key is missing. Ask whoever runs it.", Bad: true},
	"undone":           {Text: "Undone. The values from before are back."},
	"undo-conflict":    {Text: "Not undone: the same settings were changed again since. Undo the later change first, or set them by hand.", Bad: true},
	"undo-gone":        {Text: "There is nothing to undo: it was undone already, or the old value is no longer offered.", Bad: true},
}

// noticeOf is what the query's code stands for; nil for none and for unknown ones.
func noticeOf(r *http.Request) *notice {
	if n, ok := notices[r.URL.Query().Get("done")]; ok {
		return &n
	}
	return nil
}

// done sends the browser on to path, where it reads the notice.
func done(rw http.ResponseWriter, r *http.Request, path, code string) error {
	q := url.Values{"done": {code}}
	u, err := url.Parse(path)
	if err != nil {
		return err
	}
	for k, v := range u.Query() {
		q[k] = v
	}
	u.RawQuery = q.Encode()
	http.Redirect(rw, r, u.String(), http.StatusSeeOther)
	return nil
}
