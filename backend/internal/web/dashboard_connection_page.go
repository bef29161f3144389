package web

import (
	"cmp"
	"errors"
	"mime"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/proto/glasses/guide"
)

// The form shows the existing rows and a few empty ones, up to the maximum number of rows of a page.
const (
	emptyRows = 3
	maxRows   = 20
)

// previewPolicy additionally allows the page to frame its own preview.
const previewPolicy = contentPolicy + "; frame-src 'self'"

// connectionPage is the data of the template "dashboard_connection_page".
type connectionPage struct {
	formErrors
	Done         *notice
	Nav          projectNav
	Page         connpage.Page // as entered
	Version      int64         // the stored version
	Texts        []textInput
	LinkTexts    []textInput
	Themes       []choice
	Capabilities []choice
	Phrases      []phraseRow
	Toggles      []toggleRow
	Differs      []string // how the stored page differs from the values entered
	Updated      shownTime
	UpdatedBy    string
	Hosted       string // path of the hosted page
	Preview      string
}

// textInput is the data of the template "text-input". Max is in characters; 0 means no limit.
type textInput struct {
	ID, Label, Hint, Value, Error string
	Max                           int
}

type phraseRow struct {
	connpage.Phrase
	N      int // starting from 1
	Errors [2]string
}

type toggleRow struct {
	connpage.Toggle
	N      int
	Errors [2]string
}

var themeNames = map[string]string{"auto": "Follow the device", "light": "Light", "dark": "Dark"}

func (w *Web) connectionPage(c *call) error {
	stored, err := w.Dashboard.Pages.Get(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	return w.showConnectionPage(c, stored, connectionPage{Page: stored})
}

func (w *Web) showConnectionPage(c *call, stored connpage.Page, page connectionPage) error {
	input := func(id, label, hint, value string, most int) textInput {
		return textInput{id, label, hint, value, page.Error(id), most}
	}
	page.Texts = []textInput{
		input("title", "Title", "Your app's name, at most 80 characters.", page.Page.Title, 80),
		input("description", "Description", "One or two sentences on one line, at most 400 characters.",
			page.Page.Description, 400),
		input("accent", "Colour", "Of buttons and links, for example #0b6b68.", page.Page.Accent, 7),
	}
	page.LinkTexts = []textInput{
		input("supportUrl", "Support", "An https address, or empty.", page.Page.SupportURL, 500),
		input("privacyUrl", "Privacy policy", "An https address, or empty.", page.Page.PrivacyURL, 500),
	}
	for _, id := range connpage.Themes() {
		page.Themes = append(page.Themes, choice{ID: id, Label: themeNames[id], On: id == page.Page.Theme})
	}
	for _, capability := range guide.Capabilities() {
		page.Capabilities = append(page.Capabilities, choice{
			ID: capability.ID, Label: capital(strings.ReplaceAll(capability.ID, "_", " ")), About: capability.About,
			On: slices.Contains(page.Page.Capabilities, capability.ID),
		})
	}
	for i := range rowsFor(len(page.Page.Phrases)) {
		row := phraseRow{N: i + 1, Errors: [2]string{page.Error(rowID("phrase", i)), page.Error(rowID("does", i))}}
		if i < len(page.Page.Phrases) {
			row.Phrase = page.Page.Phrases[i]
		}
		page.Phrases = append(page.Phrases, row)
	}
	for i := range rowsFor(len(page.Page.Toggles)) {
		row := toggleRow{N: i + 1, Errors: [2]string{page.Error(rowID("toggle-id", i)), page.Error(rowID("toggle-label", i))}}
		if i < len(page.Page.Toggles) {
			row.Toggle = page.Page.Toggles[i]
		}
		page.Toggles = append(page.Toggles, row)
	}
	page.Done, page.Nav, page.Version = c.notice(), c.projectNav("connection-page"), stored.Version
	page.Updated, page.UpdatedBy = showTime(stored.UpdatedAt), stored.UpdatedBy
	page.Hosted, page.Preview = "/connect/"+stored.PageID, projectPath(c.project.ID)+"/connection-page/preview"
	c.rw.Header().Set("Content-Security-Policy", previewPolicy)
	return w.render(c, page.status(), "dashboard_connection_page", page)
}

func rowsFor(n int) int { return max(n, min(n+emptyRows, maxRows)) }

func rowID(name string, i int) string { return name + "-" + strconv.Itoa(i+1) }

// pageFrom replaces the fields of a page with the values of the posted form. It omits empty rows.
func pageFrom(c *call, p connpage.Page) connpage.Page {
	read := func(name string) string { return strings.TrimSpace(c.PostFormValue(name)) }
	p.Title, p.Description, p.Theme, p.Accent = read("title"), read("description"), read("theme"), read("accent")
	p.SupportURL, p.PrivacyURL = read("supportUrl"), read("privacyUrl")
	p.Capabilities = append([]string{}, c.PostForm["capability"]...)
	p.Phrases, p.Toggles = []connpage.Phrase{}, []connpage.Toggle{}
	for i := range maxRows {
		phrase := connpage.Phrase{Phrase: read(rowID("phrase", i)), Does: read(rowID("does", i))}
		if phrase.Phrase != "" || phrase.Does != "" {
			p.Phrases = append(p.Phrases, phrase)
		}
		toggle := connpage.Toggle{
			ID: read(rowID("toggle-id", i)), Label: read(rowID("toggle-label", i)), On: read(rowID("toggle-on", i)) == "on",
		}
		if toggle.ID != "" || toggle.Label != "" {
			p.Toggles = append(p.Toggles, toggle)
		}
	}
	return p
}

func (w *Web) changeConnectionPage(c *call) error {
	stored, err := w.Dashboard.Pages.Get(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	entered, version := pageFrom(c, stored), c.formVersion()
	_, after, err := w.Dashboard.Pages.Change(c.Context(), c.account.ID, c.project.ID, connpage.Change{
		Version: version, Title: &entered.Title, Description: &entered.Description, Theme: &entered.Theme,
		Accent: &entered.Accent, Capabilities: &entered.Capabilities, Phrases: &entered.Phrases, Toggles: &entered.Toggles,
		SupportURL: &entered.SupportURL, PrivacyURL: &entered.PrivacyURL,
	}, audit.Person())
	page := connectionPage{Page: entered}
	var invalid *connpage.InvalidError
	path := projectPath(c.project.ID) + "/connection-page"
	switch {
	case err == nil && after.Version == version:
		return c.done(nil, path, "unchanged")
	case errors.As(err, &invalid):
		field := inputOf(invalid.Field)
		page.add(field, fieldRule(field, invalid))
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

var rowField = regexp.MustCompile(`^(phrases|toggles)\[(\d+)\]\.(\w+)$`)

// formVersion returns the version that the form was opened with. If that is missing, it returns -1, which conflicts
// with every version.
func (c *call) formVersion() int64 {
	version, err := strconv.ParseInt(c.PostFormValue("version"), 10, 64)
	if err != nil {
		return -1
	}
	return version
}

// inputOf returns the id of a field's input, for example does-1 for phrases[0].does.
func inputOf(field string) string {
	m := rowField.FindStringSubmatch(field)
	if m == nil {
		return field
	}
	i, _ := strconv.Atoi(m[2]) // the pattern allows only a few digits
	if m[1] == "toggles" {
		return rowID("toggle-"+m[3], i)
	}
	return rowID(m[3], i)
}

// fieldRule tells the person which values the input accepts.
func fieldRule(input string, e *connpage.InvalidError) string {
	switch name, _, _ := strings.Cut(input, "-"); {
	case strings.HasPrefix(input, "toggle-id"):
		return "Use 1 to 32 of a-z, 0-9, _ and - for the id of a switch. Start with a letter, and use each id once."
	case strings.HasPrefix(input, "toggle-label"):
		return "Give the switch a label of 1 to 80 characters on one line."
	case name == "phrase":
		return "Enter a phrase of 1 to 80 characters on one line."
	case name == "does":
		return "Say what the phrase does in at most 120 characters on one line."
	case input == "accent":
		return "Enter the colour as # and six of 0-9 and a-f, such as #0b6b68."
	case input == "supportUrl" || input == "privacyUrl":
		return "Enter an https address of at most 500 characters, or leave it empty."
	}
	return sentence(e.Message)
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
