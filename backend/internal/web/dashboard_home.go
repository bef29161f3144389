package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

const (
	overviewProjects = 10
	overviewEntries  = 5
	overviewInstalls = 50
)

// overviewPage is what the template "dashboard" shows.
type overviewPage struct {
	Done     *notice
	Projects []projectRow
	More     int // projects that are not in the list
	Installs []install
	Unshown  int // linked agents that are not in the list
	Activity []activityRow
	Backend  string // address for agents; empty when not known
}

// install is one linked agent. What it says of itself is cleaned by told.
type install struct {
	Host, System, Program string
	Address, LastAddress  string // where it was linked from, and where it called from last
	Linked, First, Used   stamp
	New                   bool // linked within newFor
	Revoke                string
}

// newFor is how long a link is marked as new.
const newFor = 7 * 24 * time.Hour

func (w *Web) overview(rw http.ResponseWriter, r *http.Request, a Account) error {
	list, err := w.Dashboard.Projects.List(r.Context(), a.ID)
	if err != nil {
		return err
	}
	links, err := w.liveLinks(r, a)
	if err != nil {
		return err
	}
	entries, err := w.Dashboard.Audit.List(r.Context(), a.ID, audit.Filter{Limit: overviewEntries})
	if err != nil {
		return err
	}
	page := overviewPage{Done: noticeOf(r), Activity: activityRows(entries, list), Backend: w.SiteURL}
	rows := projectRows(list)
	slices.SortStableFunc(rows, func(a, b projectRow) int { return cmp.Compare(b.Active.ISO, a.Active.ISO) })
	page.Projects = rows[:min(len(rows), overviewProjects)]
	page.More = len(rows) - len(page.Projects)
	page.Unshown = max(0, len(links)-overviewInstalls)
	for _, l := range links[:len(links)-page.Unshown] {
		page.Installs = append(page.Installs, installOf(l, w.Now()))
	}
	return w.render(rw, r, http.StatusOK, "dashboard", page)
}

func installOf(l link.Link, now time.Time) install {
	return install{
		Host: told(l.Requester.Host), System: told(l.Requester.OS), Program: told(l.Requester.Client), Address: told(l.Requester.IP),
		LastAddress: told(cmp.Or(l.LastIP, l.Requester.IP)), New: now.Sub(l.LinkedAt) < newFor,
		Linked: at(l.LinkedAt), First: at(l.UsedAt), Used: at(l.LastUsedAt), Revoke: "/account/links/" + url.PathEscape(l.ID) + "/revoke",
	}
}

// liveLinks are those that still work.
func (w *Web) liveLinks(r *http.Request, a Account) ([]link.Link, error) {
	all, err := w.Dashboard.Installs.Links(r.Context(), a.ID)
	if err != nil {
		return nil, err
	}
	now := w.Now()
	return slices.DeleteFunc(slices.Clone(all), func(l link.Link) bool {
		return !l.RevokedAt.IsZero() || (!l.ExpiresAt.IsZero() && !l.ExpiresAt.After(now))
	}), nil
}

func (w *Web) revokeInstallPage(rw http.ResponseWriter, r *http.Request, a Account) error {
	links, err := w.liveLinks(r, a)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(links, func(l link.Link) bool { return l.ID == r.PathValue("link") })
	if i < 0 {
		return errNotFound
	}
	one := installOf(links[i], w.Now())
	return w.confirm(rw, r, confirmation{
		Nav: "overview", Title: "Revoke the link of " + one.Program + " on " + one.Host + "?",
		Text:   []string{"Its next call is refused. To use it again, you link it again."},
		Action: one.Revoke, Label: "Revoke", Danger: true, Back: "/account", Instead: "Keep it linked",
	})
}

func (w *Web) revokeInstall(rw http.ResponseWriter, r *http.Request, a Account) error {
	err := w.Dashboard.Installs.RevokeLink(w.caller(r), a.ID, r.PathValue("link"), audit.Person())
	if errors.Is(err, link.ErrUnknown) {
		return errNotFound
	}
	if err != nil {
		return err
	}
	return done(rw, r, "/account", "revoked-link")
}

func (w *Web) revokeInstallsPage(rw http.ResponseWriter, r *http.Request, _ Account) error {
	return w.confirm(rw, r, confirmation{
		Nav: "overview", Title: "Revoke every link?",
		Text:   []string{"The next call of every linked agent, on every computer, is refused until you link it again. You stay signed in here."},
		Action: "/account/links/revoke-all", Label: "Revoke all", Danger: true, Back: "/account", Instead: "Keep them",
	})
}

func (w *Web) revokeInstalls(rw http.ResponseWriter, r *http.Request, a Account) error {
	if _, err := w.Dashboard.Installs.RevokeAll(w.caller(r), a.ID, audit.Person()); err != nil {
		return err
	}
	return done(rw, r, "/account", "revoked-links")
}
