package web

import (
	"errors"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/proto/glasses/guide"
)

// Rows of the form: those that are there, a few to fill, no more than a page may have.
const (
	emptyRows = 3
	maxRows   = 20
)

// previewPolicy also lets the page frame its own preview.
const previewPolicy = contentPolicy + "; frame-src 'self'"

// connectionPage is what the template "dashboard_page" shows.
type connectionPage struct {
	formErrors
	Done         *notice
	Nav          projectNav
	Page         connpage.Page // as entered
	Version      int64         // that stands
	Texts        []textInput
	LinkTexts    []textInput
	Themes       []choice
	Capabilities []choice
	Phrases      []phraseRow
	Toggles      []toggleRow
	Differs      []string // where what stands is not as entered
	Updated      stamp
	UpdatedBy    string
	Hosted       string // path of the hosted page
	Preview      string
}

// textInput is what the template "text-input" shows; Max is in characters, 0 for none.
type textInput struct {
	ID, Label, Hint, Value, Error string
	Max                           int
}

type phraseRow struct {
	connpage.Phrase
	N     int // from 1
	Wrong [2]string
}

type toggleRow struct {
	connpage.Toggle
	N     int
	Wrong [2]string
}

var themeNames = map[string]string{"auto": "As the device is set", "light": "Light", "dark": "Dark"}

func (w *Web) connectionPage(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	stands, err := w.Dashboard.Pages.Get(r.Context(), a.ID, p.ID)
	if err != nil {
		return err
	}
	return w.showConnectionPage(rw, r, p, stands, connectionPage{Page: stands})
}

func (w *Web) showConnectionPage(rw http.ResponseWriter, r *http.Request, p projects.Project, stands connpage.Page, page connectionPage) error {
	input := func(id, label, hint, value string, most int) textInput {
		return textInput{id, label, hint, value, page.Error(id), most}
	}
	page.Texts = []textInput{
		input("title", "Title", "Your app's name, at most 80 characters.", page.Page.Title, 80),
		input("description", "Description", "One or two sentences on one line, at most 400 characters.", page.Page.Description, 400),
		input("accent", "Colour", "Of buttons and links: # and six of 0-9 and a-f, such as #0b6b68.", page.Page.Accent, 7),
	}
	page.LinkTexts = []textInput{
		input("supportUrl", "Support", "An https address, or empty.", page.Page.SupportURL, 500),
		input("privacyUrl", "Privacy policy", "An https address, or empty.", page.Page.PrivacyURL, 500),
	}
	for _, id := range connpage.Themes() {
		page.Themes = append(page.Themes, choice{ID: id, Label: themeNames[id], On: id == page.Page.Theme})
	}
	for _, c := range guide.Capabilities() {
		page.Capabilities = append(page.Capabilities, choice{ID: c.ID, Label: strings.ToUpper(c.ID[:1]) + strings.ReplaceAll(c.ID[1:], "_", " "),
			About: c.About, On: slices.Contains(page.Page.Capabilities, c.ID)})
	}
	for i := range rowsFor(len(page.Page.Phrases)) {
		row := phraseRow{N: i + 1, Wrong: [2]string{page.Error(rowID("phrase", i)), page.Error(rowID("does", i))}}
		if i < len(page.Page.Phrases) {
			row.Phrase = page.Page.Phrases[i]
		}
		page.Phrases = append(page.Phrases, row)
	}
	for i := range rowsFor(len(page.Page.Toggles)) {
		row := toggleRow{N: i + 1, Wrong: [2]string{page.Error(rowID("toggle-id", i)), page.Error(rowID("toggle-label", i))}}
		if i < len(page.Page.Toggles) {
			row.Toggle = page.Page.Toggles[i]
		}
		page.Toggles = append(page.Toggles, row)
	}
	page.Done, page.Nav, page.Version = noticeOf(r), navOf(p, "connection-page"), stands.Version
	page.Updated, page.UpdatedBy = at(stands.UpdatedAt), stands.UpdatedBy
	page.Hosted, page.Preview = "/connect/"+stands.PageID, projectPath(p.ID)+"/connection-page/preview"
	rw.Header().Set("Content-Security-Policy", previewPolicy)
	return w.render(rw, r, statusOf(page.formErrors), "dashboard_page", page)
}

func rowsFor(n int) int { return max(n, min(n+emptyRows, maxRows)) }

func rowID(name string, i int) string { return name + "-" + strconv.Itoa(i+1) }

// pageFrom reads the posted form over the page that stands. Rows without any text are left out.
func pageFrom(r *http.Request, stands connpage.Page) connpage.Page {
	p := stands
	for name, field := range map[string]*string{"title": &p.Title, "description": &p.Description, "theme": &p.Theme, "accent": &p.Accent,
		"supportUrl": &p.SupportURL, "privacyUrl": &p.PrivacyURL} {
		*field = strings.TrimSpace(r.PostFormValue(name))
	}
	p.Capabilities = append([]string{}, r.PostForm["capability"]...)
	p.Phrases, p.Toggles = []connpage.Phrase{}, []connpage.Toggle{}
	for i := range maxRows {
		phrase := connpage.Phrase{Phrase: strings.TrimSpace(r.PostFormValue(rowID("phrase", i))), Does: strings.TrimSpace(r.PostFormValue(rowID("does", i)))}
		if phrase.Phrase != "" || phrase.Does != "" {
			p.Phrases = append(p.Phrases, phrase)
		}
		toggle := connpage.Toggle{ID: strings.TrimSpace(r.PostFormValue(rowID("toggle-id", i))), Label: strings.TrimSpace(r.PostFormValue(rowID("toggle-label", i))),
			On: r.PostFormValue(rowID("toggle-on", i)) == "on"}
		if toggle.ID != "" || toggle.Label != "" {
			p.Toggles = append(p.Toggles, toggle)
		}
	}
	return p
}

func (w *Web) changeConnectionPage(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	stands, err := w.Dashboard.Pages.Get(r.Context(), a.ID, p.ID)
	if err != nil {
		return err
	}
	entered := pageFrom(r, stands)
	version, err := strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	if err != nil {
		version = -1 // of no page: answered like one that was changed
	}
	_, after, err := w.Dashboard.Pages.Change(r.Context(), a.ID, p.ID, connpage.Change{
		Version: version, Title: &entered.Title, Description: &entered.Description, Theme: &entered.Theme, Accent: &entered.Accent,
		Capabilities: &entered.Capabilities, Phrases: &entered.Phrases, Toggles: &entered.Toggles,
		SupportURL: &entered.SupportURL, PrivacyURL: &entered.PrivacyURL,
	}, audit.Person())
	page := connectionPage{Page: entered}
	var invalid *connpage.InvalidError
	switch {
	case err == nil && after.Version == version:
		return done(rw, r, projectPath(p.ID)+"/connection-page", "unchanged")
	case err == nil:
		return done(rw, r, projectPath(p.ID)+"/connection-page", "saved")
	case errors.As(err, &invalid):
		field := inputOf(invalid.Field)
		page.wrong(field, pageTrouble(field, invalid))
	case errors.Is(err, connpage.ErrConflict):
		if stands, err = w.Dashboard.Pages.Get(r.Context(), a.ID, p.ID); err != nil {
			return err
		}
		page.Problem = "The page was changed since you opened this form. What you entered is still below; saving it now replaces what stands."
		page.Differs = pageDifferences(stands, entered)
	default:
		return err
	}
	return w.showConnectionPage(rw, r, p, stands, page)
}

var rowField = regexp.MustCompile(`^(phrases|toggles)\[(\d+)\]\.(\w+)$`)

// inputOf is the id of the input that a field of the domain was read from: phrases[0].does is does-1.
func inputOf(field string) string {
	m := rowField.FindStringSubmatch(field)
	if m == nil {
		return field
	}
	i, _ := strconv.Atoi(m[2]) // digits, and few
	if m[1] == "toggles" {
		return rowID("toggle-"+m[3], i)
	}
	return rowID(m[3], i)
}

// pageTrouble says in plain words what the bounds are.
func pageTrouble(input string, e *connpage.InvalidError) string {
	switch name, _, _ := strings.Cut(input, "-"); {
	case strings.HasPrefix(input, "toggle-id"):
		return "The id of a switch has 1 to 32 of a-z, 0-9, _ and -, begins with a letter, and is there once."
	case strings.HasPrefix(input, "toggle-label"):
		return "A switch needs a label of 1 to 80 characters on one line."
	case name == "phrase":
		return "A phrase has 1 to 80 characters on one line."
	case name == "does":
		return "What a phrase does has at most 120 characters on one line."
	case input == "accent":
		return "The colour is # and six of 0-9 and a-f, such as #0b6b68."
	case input == "supportUrl" || input == "privacyUrl":
		return "This is an https address of at most 500 characters, or empty."
	}
	return sentence(e.Message)
}

// pageDifferences tells what stands where it is not as entered.
func pageDifferences(stands, entered connpage.Page) []string {
	var lines []string
	for _, f := range []struct{ name, stands, entered string }{
		{"Title", stands.Title, entered.Title}, {"Description", stands.Description, entered.Description},
		{"Theme", themeNames[stands.Theme], themeNames[entered.Theme]}, {"Colour", stands.Accent, entered.Accent},
		{"Capabilities", strings.Join(stands.Capabilities, ", "), strings.Join(entered.Capabilities, ", ")},
		{"Phrases", phraseWords(stands), phraseWords(entered)}, {"Switches", toggleWords(stands), toggleWords(entered)},
		{"Support link", stands.SupportURL, entered.SupportURL}, {"Privacy link", stands.PrivacyURL, entered.PrivacyURL},
	} {
		if f.stands != f.entered {
			if f.stands == "" {
				f.stands = "empty"
			}
			lines = append(lines, f.name+" now: "+f.stands)
		}
	}
	return lines
}

func phraseWords(p connpage.Page) string {
	var all []string
	for _, x := range p.Phrases {
		all = append(all, strings.TrimSuffix(x.Phrase+": "+x.Does, ": "))
	}
	return strings.Join(all, "; ")
}

func toggleWords(p connpage.Page) string {
	var all []string
	for _, x := range p.Toggles {
		all = append(all, x.Label+" ("+x.ID+", "+onOff(x.On)+")")
	}
	return strings.Join(all, "; ")
}

func (w *Web) connectionPageFile(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	page, err := w.Dashboard.Pages.Get(r.Context(), a.ID, p.ID)
	if err != nil {
		return err
	}
	name, html, err := w.Dashboard.Pages.File(page)
	if err != nil {
		return err
	}
	h := rw.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	_, _ = rw.Write(html) // the browser may be gone
	return nil
}
