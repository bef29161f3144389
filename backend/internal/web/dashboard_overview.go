package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/sessions"
)

const (
	overviewProjects = 10
	overviewEntries  = 5
	overviewLinks    = 50
	overviewSessions = 3
)

// overviewPage is the data of the template "dashboard".
type overviewPage struct {
	Done     *notice
	Projects []projectRow
	More     int // number of projects not listed
	Links    []linkRow
	Unshown  int // number of links not listed
	Activity []activityRow
	Credit   creditLine
	Steps    firstSteps
	Sessions sessionCards // the newest
}

// linkRow is a linked agent. Text that the agent reports about itself is sanitized by printable.
type linkRow struct {
	Host, System, Program string
	Address, LastAddress  string // addresses at linking and at the last call
	Linked, First, Used   shownTime
	New                   bool // linked within newFor
	Revoke                string
}

// newFor is how long a link is marked as new.
const newFor = 7 * 24 * time.Hour

func (w *Web) overview(c *call) error {
	list, err := w.Dashboard.Projects.List(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	links, err := w.liveLinks(c)
	if err != nil {
		return err
	}
	entries, err := w.Dashboard.Audit.List(c.Context(), c.account.ID, audit.Filter{Limit: overviewEntries})
	if err != nil {
		return err
	}
	page := overviewPage{Done: c.notice(), Activity: activityRows(entries, list)}
	if page.Steps, err = w.firstSteps(c, len(links) > 0, len(list) > 0); err != nil {
		return err
	}
	page.Sessions, err = w.sessionCards(c, sessions.Listing{Limit: overviewSessions}, "/account")
	if err != nil {
		return err
	}
	if page.Credit, err = w.accountLine(c); err != nil {
		return err
	}
	page.Projects = projectRows(sortProjects(slices.Clone(list), false)[:min(len(list), overviewProjects)])
	page.More = len(list) - len(page.Projects)
	page.Unshown = max(0, len(links)-overviewLinks)
	for _, l := range links[:len(links)-page.Unshown] {
		page.Links = append(page.Links, newLinkRow(l, w.Now()))
	}
	return w.render(c, http.StatusOK, "dashboard", page)
}

func newLinkRow(l link.Link, now time.Time) linkRow {
	return linkRow{
		Host: printable(l.Requester.Host), System: printable(l.Requester.OS), Program: printable(l.Requester.Client),
		Address: printable(l.Requester.IP), LastAddress: printable(cmp.Or(l.LastIP, l.Requester.IP)),
		Linked: showTime(l.LinkedAt), First: showTime(l.UsedAt), Used: showTime(l.LastUsedAt),
		New: now.Sub(l.LinkedAt) < newFor, Revoke: "/account/links/" + url.PathEscape(l.ID) + "/revoke",
	}
}

// liveLinks returns the links that are neither revoked nor expired.
func (w *Web) liveLinks(c *call) ([]link.Link, error) {
	all, err := w.Links.Links(c.Context(), c.account.ID)
	now := w.Now()
	return slices.DeleteFunc(slices.Clone(all), func(l link.Link) bool {
		return !l.RevokedAt.IsZero() || (!l.ExpiresAt.IsZero() && !l.ExpiresAt.After(now))
	}), err
}

func (w *Web) revokeLinkPage(c *call) error {
	links, err := w.liveLinks(c)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(links, func(l link.Link) bool { return l.ID == c.PathValue("link") })
	if i < 0 {
		return errNotFound
	}
	row := newLinkRow(links[i], w.Now())
	return w.confirm(c, confirmation{
		Nav: "overview", Title: "Revoke the link of " + row.Program + " on " + row.Host + "?",
		Text:   []string{"Its next call is refused. To use it again, link it again."},
		Action: row.Revoke, Label: "Revoke", Back: "/account", Instead: "Keep it linked",
	})
}

func (w *Web) revokeLink(c *call) error {
	err := w.Links.RevokeLink(w.caller(c), c.account.ID, c.PathValue("link"), audit.Person())
	return c.done(err, "/account", "revoked-link")
}

func (w *Web) revokeAllLinksPage(c *call) error {
	return w.confirm(c, confirmation{
		Nav: "overview", Title: "Revoke every link?",
		Text: []string{"The next call of every linked agent, on every computer, is refused until you link it again. " +
			"You stay signed in here."},
		Action: "/account/links/revoke-all", Label: "Revoke all", Back: "/account", Instead: "Keep them",
	})
}

func (w *Web) revokeAllLinks(c *call) error {
	_, err := w.Links.RevokeAll(w.caller(c), c.account.ID, audit.Person())
	return c.done(err, "/account", "revoked-links")
}
