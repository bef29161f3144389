package connpage

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/service-dev/service/glasses/guide"
)

// Maximum lengths of a page's texts, in characters, and of its lists.
const (
	maxTitle       = 80
	maxDescription = 400
	maxPhrases     = 20
	maxPhrase      = 80
	maxDoes        = 120
	maxToggles     = 20
	maxLabel       = 80
	maxURL         = 500
)

// Themes returns the names of the themes that a page can have.
func Themes() []string { return []string{"auto", "light", "dark"} }

var (
	accentForm = regexp.MustCompile(`^#[0-9a-f]{6}$`)
	toggleForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
)

// clean returns the change with trimmed texts. Its error joins an *InvalidError for each invalid field, in the order of
// the form.
func clean(c Change) (Change, error) {
	steps := []func(*Change) error{
		func(c *Change) error { return text(c.Title, "title", 1, maxTitle, func(s string) { c.Title = &s }) },
		func(c *Change) error {
			return text(c.Description, "description", 0, maxDescription, func(s string) { c.Description = &s })
		},
		cleanAccent, cleanTheme, cleanCapabilities, cleanPhrases, cleanToggles,
		func(c *Change) error { return link(c.SupportURL, "supportUrl", func(s string) { c.SupportURL = &s }) },
		func(c *Change) error { return link(c.PrivacyURL, "privacyUrl", func(s string) { c.PrivacyURL = &s }) },
	}
	var problems []error
	for _, step := range steps {
		problems = append(problems, step(&c))
	}
	if err := errors.Join(problems...); err != nil {
		return Change{}, err
	}
	return c, nil
}

// InvalidFields returns every *InvalidError in an error returned by Change.
func InvalidFields(err error) []*InvalidError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // it visits all errors, not the first
		var all []*InvalidError
		for _, one := range joined.Unwrap() {
			all = append(all, InvalidFields(one)...)
		}
		return all
	}
	var invalid *InvalidError
	if errors.As(err, &invalid) {
		return []*InvalidError{invalid}
	}
	return nil
}

func text(s *string, field string, least, most int, keep func(string)) error {
	if s == nil {
		return nil
	}
	trimmed := strings.TrimSpace(*s)
	n := utf8.RuneCountInString(trimmed)
	if n < least || n > most || !utf8.ValidString(trimmed) || strings.ContainsFunc(trimmed, unprintable) {
		return &InvalidError{field, fmt.Sprintf("%s must be %d to %d printable characters on one line", field, least, most)}
	}
	keep(trimmed)
	return nil
}

// unprintable reports whether r is unprintable or changes the direction of text.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }

func cleanAccent(c *Change) error {
	if c.Accent == nil {
		return nil
	}
	accent := strings.ToLower(strings.TrimSpace(*c.Accent))
	if !accentForm.MatchString(accent) {
		return &InvalidError{"accent", "accent must be a colour such as " + defaultAccent}
	}
	c.Accent = &accent
	return nil
}

func cleanTheme(c *Change) error {
	if c.Theme != nil && !slices.Contains(Themes(), *c.Theme) {
		return &InvalidError{"theme", "theme must be one of " + strings.Join(Themes(), ", ")}
	}
	return nil
}

func cleanCapabilities(c *Change) error {
	if c.Capabilities == nil {
		return nil
	}
	known := guide.CapabilityIDs()
	seen := map[string]bool{}
	for _, id := range *c.Capabilities {
		if !slices.Contains(known, id) {
			return &InvalidError{"capabilities", fmt.Sprintf("capabilities: %q must be one of %s", cut(id), strings.Join(known,
				", "))}
		}
		seen[id] = true
	}
	own := []string{} // IDs without duplicates, in the guide's order
	for _, id := range known {
		if seen[id] {
			own = append(own, id)
		}
	}
	c.Capabilities = &own
	return nil
}

func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), 40)], "") }

// cleanList replaces a list with a copy after applying clean to each element. A nil list stays nil.
func cleanList[T any](list **[]T, field string, limit int, clean func(i int, element *T) error) error {
	if *list == nil {
		return nil
	}
	if n := len(**list); n > limit {
		return &InvalidError{field, fmt.Sprintf("%s has %d entries, over the limit of %d", field, n, limit)}
	}
	own := slices.Clone(**list)
	problems := make([]error, len(own))
	for i := range own {
		problems[i] = clean(i, &own[i])
	}
	*list = &own
	return errors.Join(problems...)
}

func cleanPhrases(c *Change) error {
	return cleanList(&c.Phrases, "phrases", maxPhrases, func(i int, p *Phrase) error {
		return errors.Join(
			text(&p.Phrase, fmt.Sprintf("phrases[%d].phrase", i), 1, maxPhrase, func(s string) { p.Phrase = s }),
			text(&p.Does, fmt.Sprintf("phrases[%d].does", i), 0, maxDoes, func(s string) { p.Does = s }))
	})
}

func cleanToggles(c *Change) error {
	seen := map[string]bool{}
	return cleanList(&c.Toggles, "toggles", maxToggles, func(i int, t *Toggle) error {
		var wrongID error
		field := fmt.Sprintf("toggles[%d].id", i)
		switch {
		case !toggleForm.MatchString(t.ID):
			wrongID = &InvalidError{field, field + " must be 1 to 32 of a-z, 0-9, _ and -, a letter first"}
		case seen[t.ID]:
			wrongID = &InvalidError{field, fmt.Sprintf("%s contains %q twice", field, t.ID)}
		}
		seen[t.ID] = true
		return errors.Join(wrongID,
			text(&t.Label, fmt.Sprintf("toggles[%d].label", i), 1, maxLabel, func(s string) { t.Label = s }))
	})
}

// link accepts only https addresses, because the page is shown inside apps, where other schemes could mislead users.
func link(s *string, field string, keep func(string)) error {
	if s == nil {
		return nil
	}
	trimmed := strings.TrimSpace(*s)
	if trimmed != "" {
		u, err := url.Parse(trimmed)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || len(trimmed) > maxURL ||
			strings.ContainsFunc(trimmed, unprintable) {
			return &InvalidError{field, fmt.Sprintf("%s must be empty or an https address of at most %d characters", field,
				maxURL)}
		}
	}
	keep(trimmed)
	return nil
}
