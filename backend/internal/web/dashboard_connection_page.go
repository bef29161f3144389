package web

import (
	"cmp"
	"errors"
	"mime"
	"strconv"
	"strings"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
)

// previewPolicy additionally allows the page to frame its own preview.
const previewPolicy = contentPolicy + "; frame-src 'self'"

// connectionPage is the data of the template "dashboard_connection_page".
type connectionPage struct {
	formErrors
	connectionForm
	Done      *notice
	Nav       projectNav
	Version   int64    // the stored version
	Differs   []string // differences between the stored page and the entered values
	Updated   shownTime
	UpdatedBy string
	Hosted    string // path of the hosted page
	Preview   string
}

func (w *Web) connectionPage(c *call) error {
	stored, err := w.Dashboard.Pages.Get(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	return w.showConnectionPage(c, stored, connectionPage{connectionForm: newConnectionForm(stored)})
}

func (w *Web) showConnectionPage(c *call, stored connpage.Page, page connectionPage) error {
	page.ToTop = true
	page.describe(page.formErrors)
	page.Done, page.Nav, page.Version = c.notice(), c.projectNav("connection-page"), stored.Version
	page.Updated, page.UpdatedBy = showTime(stored.UpdatedAt), stored.UpdatedBy
	page.Hosted, page.Preview = "/connect/"+stored.PageID, projectPath(c.project.ID)+"/connection-page/preview"
	c.rw.Header().Set("Content-Security-Policy", previewPolicy)
	return w.render(c, page.status(), "dashboard_connection_page", page)
}

func (w *Web) changeConnectionPage(c *call) error {
	stored, err := w.Dashboard.Pages.Get(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	page := connectionPage{connectionForm: readConnectionForm(c, stored)}
	if page.addRow(c.PostFormValue("act")) {
		return w.showConnectionPage(c, atVersion(stored, c.formVersion()), page)
	}
	entered, version := page.Page, c.formVersion()
	_, after, err := w.Dashboard.Pages.Change(c.Context(), c.account.ID, c.project.ID, connpage.Change{
		Version: version, Title: &entered.Title, Description: &entered.Description, Theme: &entered.Theme,
		Accent: &entered.Accent, Capabilities: &entered.Capabilities, Phrases: &entered.Phrases, Toggles: &entered.Toggles,
		SupportURL: &entered.SupportURL, PrivacyURL: &entered.PrivacyURL,
	}, audit.Person())
	path := projectPath(c.project.ID) + "/connection-page"
	invalid := connpage.InvalidFields(err)
	switch {
	case err == nil && after.Version == version:
		return c.done(nil, path, "unchanged")
	case len(invalid) > 0:
		for _, one := range invalid {
			field := inputOf(one.Field)
			page.add(field, fieldRule(field, one))
		}
		page.Problem = "Nothing was saved yet. Correct " + count(len(invalid), "field") + ":"
		stored = atVersion(stored, version)
	case errors.Is(err, connpage.ErrConflict):
		if stored, err = w.Dashboard.Pages.Get(c.Context(), c.account.ID, c.project.ID); err != nil {
			return err
		}
		page.Problem = "The page has changed since you opened this form. " +
			"What you entered is still below. If you save it now, it replaces the changes of others."
		page.Differs = pageDifferences(stored, entered)
	default:
		return c.done(err, path, "saved")
	}
	return w.showConnectionPage(c, stored, page)
}

// atVersion keeps the version with which the form was opened, so that a form that is shown again still detects
// changes saved by others meanwhile.
func atVersion(stored connpage.Page, version int64) connpage.Page {
	stored.Version = version
	return stored
}

// formVersion returns the version with which the form was opened, or -1, which conflicts with every version, if the
// field is missing.
func (c *call) formVersion() int64 {
	version, err := strconv.ParseInt(c.PostFormValue("version"), 10, 64)
	if err != nil {
		return -1
	}
	return version
}

// pageDifferences lists the stored values that differ from the values entered.
func pageDifferences(stored, entered connpage.Page) []string {
	var lines []string
	theirs := pageLines(entered)
	for i, line := range pageLines(stored) {
		if line != theirs[i] {
			lines = append(lines, line)
		}
	}
	return lines
}

// pageLines describes each field of a page.
func pageLines(p connpage.Page) []string {
	var phrases, toggles []string
	for _, x := range p.Phrases {
		phrases = append(phrases, strings.TrimSuffix(x.Phrase+": "+x.Does, ": "))
	}
	for _, x := range p.Toggles {
		toggles = append(toggles, x.Label+" ("+x.ID+", "+onOff(x.On)+")")
	}
	line := func(name string, values ...string) string {
		return name + " now: " + cmp.Or(strings.Join(values, "; "), "empty")
	}
	return []string{
		line("Title", p.Title), line("Description", p.Description), line("Theme", themeNames[p.Theme]),
		line("Colour", p.Accent),
		line("Capabilities", strings.Join(p.Capabilities, ", ")), line("Phrases", phrases...), line("Switches", toggles...),
		line("Support link", p.SupportURL), line("Privacy link", p.PrivacyURL),
	}
}

func (w *Web) connectionPageFile(c *call) error {
	page, err := w.Dashboard.Pages.Get(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	name, html, err := w.Dashboard.Pages.File(page)
	if err != nil {
		return err
	}
	h := c.rw.Header()
	h.Set("Content-Type", htmlType)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	_, _ = c.rw.Write(html) // the browser may have disconnected
	return nil
}
