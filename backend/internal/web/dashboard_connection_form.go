package web

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/glasses/guide"
)

// maxRows is the maximum number of phrases, and of switches, on a page.
const maxRows = 20

// connectionForm is the form of a connection page.
type connectionForm struct {
	Page         connpage.Page // page with the entered values
	Texts        []textInput
	Accent       textInput
	LinkTexts    []textInput
	Themes       []choice
	Capabilities []choice
	Phrases      pageRows
	Toggles      pageRows
	Entered      bool // whether it shows the entered values instead of the stored ones
}

// MostRows is the maximum number of rows.
func (connectionForm) MostRows() int { return maxRows }

// textInput is the data of the template "text-input". Max is in characters; 0 means no limit.
type textInput struct {
	ID, Label, Hint, Value, Error string
	Max                           int
	Code                          bool // the input is for programs: not spell-checked, and written from left to right
	Focus                         bool // whether it has the focus when the page opens
}

// DescribedBy lists the ids of the hint and the error.
func (i textInput) DescribedBy() string {
	var ids []string
	if i.Hint != "" {
		ids = append(ids, i.ID+"-hint")
	}
	if i.Error != "" {
		ids = append(ids, i.ID+"-error")
	}
	return strings.Join(ids, " ")
}

// pageRows is a repeated part of the form.
type pageRows struct {
	count int
	added bool // the last row was added just now
	Rows  []pageRow
}

// addRow is the data of the template "add-row". Full is the text shown if no more rows fit.
type addRow struct {
	Act, Label, Full string
	More             bool
}

// AddPhrase returns the button for another phrase.
func (f connectionForm) AddPhrase() addRow {
	return addRow{"add-phrase", "Add a phrase", "A page has at most 20 phrases.", f.Phrases.count < maxRows}
}

// AddToggle returns the button for another switch.
func (f connectionForm) AddToggle() addRow {
	return addRow{"add-toggle", "Add a switch", "A page has at most 20 switches.", f.Toggles.count < maxRows}
}

// pageRow is a phrase or a switch. Switch is nil for a phrase.
type pageRow struct {
	N      int // starting from 1
	Inputs []textInput
	Switch *choice
}

var themeNames = map[string]string{"auto": "Follow the device", "light": "Light", "dark": "Dark"}

// newConnectionForm returns a form for a page, with one empty row after the existing ones.
func newConnectionForm(p connpage.Page) connectionForm {
	return connectionForm{Page: p, Phrases: pageRows{count: min(len(p.Phrases)+1, maxRows)},
		Toggles: pageRows{count: min(len(p.Toggles)+1, maxRows)}}
}

// readConnectionForm replaces the fields of a page with the values of the posted form. It omits empty rows, but keeps
// their number.
func readConnectionForm(c *call, p connpage.Page) connectionForm {
	f := connectionForm{Entered: true}
	read := func(name string) string { return strings.TrimSpace(c.PostFormValue(name)) }
	p.Title, p.Description, p.Theme, p.Accent = read("title"), read("description"), read("theme"), read("accent")
	p.SupportURL, p.PrivacyURL = read("supportUrl"), read("privacyUrl")
	p.Capabilities = append([]string{}, c.PostForm["capability"]...)
	p.Phrases, p.Toggles = []connpage.Phrase{}, []connpage.Toggle{}
	for i := range maxRows {
		if c.PostForm.Has(rowID("phrase", i)) {
			f.Phrases.count = i + 1
		}
		if c.PostForm.Has(rowID("toggle-id", i)) {
			f.Toggles.count = i + 1
		}
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
	f.Page = p
	return f
}

// addRow adds the row that a button of the form requests. It reports whether act is such a button.
func (f *connectionForm) addRow(act string) bool {
	rows := map[string]*pageRows{"add-phrase": &f.Phrases, "add-toggle": &f.Toggles}[act]
	if rows == nil {
		return false
	}
	rows.added = rows.count < maxRows
	rows.count = min(rows.count+1, maxRows)
	return true
}

// describe fills in the data for the template.
func (f *connectionForm) describe(problems formErrors) {
	input := func(id, label, hint, value string, most int) textInput {
		return textInput{ID: id, Label: label, Hint: hint, Value: value, Error: problems.Error(id), Max: most}
	}
	p := f.Page
	f.Texts = []textInput{
		input("title", "Title", "Your app's name, at most 80 characters.", p.Title, 80),
		input("description", "Description", "One or two sentences on one line, at most 400 characters.", p.Description, 400),
	}
	f.Accent = input("accent", "Colour", "Of buttons and links, for example #0b6b68. "+
		"The page darkens or lightens it where that is needed to read it.", p.Accent, 7)
	f.LinkTexts = []textInput{
		input("supportUrl", "Support", "An https address, or empty.", p.SupportURL, 500),
		input("privacyUrl", "Privacy policy", "An https address, or empty.", p.PrivacyURL, 500),
	}
	for _, id := range connpage.Themes() {
		f.Themes = append(f.Themes, choice{ID: id, Label: themeNames[id], On: id == p.Theme})
	}
	for _, capability := range guide.Capabilities() {
		f.Capabilities = append(f.Capabilities, choice{
			ID: capability.ID, Label: capital(strings.ReplaceAll(capability.ID, "_", " ")), About: capability.About,
			On: slices.Contains(p.Capabilities, capability.ID),
		})
	}
	f.describeRows(input)
}

// describeRows fills in the rows.
func (f *connectionForm) describeRows(input func(id, label, hint, value string, most int) textInput) {
	for i := range max(f.Phrases.count, len(f.Page.Phrases)) {
		phrase := at(f.Page.Phrases, i)
		row := pageRow{N: i + 1, Inputs: []textInput{
			input(rowID("phrase", i), "Phrase", "", phrase.Phrase, 80),
			input(rowID("does", i), "What it does", "", phrase.Does, 120),
		}}
		row.Inputs[0].Focus = f.Phrases.added && i == f.Phrases.count-1
		f.Phrases.Rows = append(f.Phrases.Rows, row)
	}
	for i := range max(f.Toggles.count, len(f.Page.Toggles)) {
		toggle := at(f.Page.Toggles, i)
		row := pageRow{N: i + 1, Switch: &choice{ID: rowID("toggle-on", i), Label: "On at first", On: toggle.On},
			Inputs: []textInput{
				input(rowID("toggle-id", i), "Id", "", toggle.ID, 32),
				input(rowID("toggle-label", i), "Label", "", toggle.Label, 80),
			}}
		row.Inputs[0].Code = true
		row.Inputs[0].Focus = f.Toggles.added && i == f.Toggles.count-1
		f.Toggles.Rows = append(f.Toggles.Rows, row)
	}
}

// at returns element i, or the zero value if the list is too short.
func at[T any](list []T, i int) (element T) {
	if i < len(list) {
		element = list[i]
	}
	return element
}

func rowID(name string, i int) string { return name + "-" + strconv.Itoa(i+1) }

var rowField = regexp.MustCompile(`^(phrases|toggles)\[(\d+)\]\.(\w+)$`)

// inputOf returns the id of a field's input, for example does-1 for phrases[0].does.
func inputOf(field string) string {
	switch field {
	case "theme":
		return "theme-auto"
	case "capabilities":
		return "capability-" + guide.CapabilityIDs()[0]
	}
	m := rowField.FindStringSubmatch(field)
	if m == nil {
		return field
	}
	i, _ := strconv.Atoi(m[2]) // the pattern limits the number of digits
	if m[1] == "toggles" {
		return rowID("toggle-"+m[3], i)
	}
	return rowID(m[3], i)
}

// fieldRule explains to the user which values the input accepts.
func fieldRule(input string, e *connpage.InvalidError) string {
	switch name, _, _ := strings.Cut(input, "-"); {
	case strings.HasPrefix(input, "theme"):
		return "Choose light, dark or what the device is set to."
	case strings.HasPrefix(input, "toggle-id"):
		return "Use 1 to 32 of a-z, 0-9, _ and - for the id of a switch. Start with a letter, and use each id once."
	case strings.HasPrefix(input, "toggle-label"):
		return "Give the switch a label of 1 to 80 characters on one line."
	case name == "phrase":
		return "Enter a phrase of 1 to 80 characters on one line."
	case name == "does":
		return "Say what the phrase does in at most 120 characters on one line."
	case input == "title":
		return "Enter a title of 1 to 80 characters on one line."
	case input == "description":
		return "Enter a description of at most 400 characters on one line."
	case input == "accent":
		return "Enter the colour as # and six of 0-9 and a-f, such as #0b6b68."
	case input == "supportUrl" || input == "privacyUrl":
		what := map[string]string{"supportUrl": "support", "privacyUrl": "the privacy policy"}[input]
		return "Enter an https address of at most 500 characters for " + what + ", or leave it empty."
	}
	return sentence(e.Message)
}
