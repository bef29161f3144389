package connpage

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const (
	defaultTheme  = "auto"
	defaultAccent = "#0b6b68"
)

// config holds the stored settings of a page. An audit entry holds only the changed ones.
type config struct {
	Title        *string   `json:"title,omitempty"`
	Description  *string   `json:"description,omitempty"`
	Theme        *string   `json:"theme,omitempty"`
	Accent       *string   `json:"accent,omitempty"`
	Capabilities *[]string `json:"capabilities,omitempty"`
	Phrases      *[]phrase `json:"phrases,omitempty"`
	Toggles      *[]toggle `json:"toggles,omitempty"`
	SupportURL   *string   `json:"supportUrl,omitempty"`
	PrivacyURL   *string   `json:"privacyUrl,omitempty"`
}

type phrase struct {
	Phrase string `json:"phrase"`
	Does   string `json:"does"`
}

type toggle struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	On    bool   `json:"on"`
}

// defaults returns the page that a project has until its owner changes it.
func defaults(project, name string) Page {
	return Page{Project: project, Title: defaultTitle(name), Theme: defaultTheme, Accent: defaultAccent,
		Capabilities: []string{}, Phrases: []Phrase{}, Toggles: []Toggle{}}
}

// defaultTitle returns the project's name, truncated to the maximum length of a title.
func defaultTitle(name string) string {
	title := []rune(strings.TrimSpace(name))
	return string(title[:min(len(title), maxTitle)])
}

// toPage converts a stored page to a Page.
func (s Stored) toPage() (Page, error) {
	p := defaults(s.Project, s.Name)
	if len(s.Config) > 0 {
		var c config
		if err := json.Unmarshal(s.Config, &c); err != nil {
			return Page{}, fmt.Errorf("read page of %s: %w", s.Project, err)
		}
		c.change().apply(&p)
	}
	p.PageID, p.Version, p.UpdatedAt = s.PageID, s.Version, s.UpdatedAt
	if p.Version > 0 {
		p.UpdatedBy = byWhom(s)
	}
	return p, nil
}

func byWhom(s Stored) string {
	switch {
	case s.By.LinkID == "":
		return "you"
	case s.Host == "":
		return "agent"
	}
	return "agent on " + s.Host
}

func (c Change) apply(p *Page) {
	set(&p.Title, c.Title)
	set(&p.Description, c.Description)
	set(&p.Theme, c.Theme)
	set(&p.Accent, c.Accent)
	set(&p.Capabilities, c.Capabilities)
	set(&p.Phrases, c.Phrases)
	set(&p.Toggles, c.Toggles)
	set(&p.SupportURL, c.SupportURL)
	set(&p.PrivacyURL, c.PrivacyURL)
}

func set[T any](field *T, to *T) {
	if to != nil {
		*field = *to
	}
}

// difference returns the fields of p that differ from other, and their names, for storing and undoing a change.
func difference(p, other Page) (c config, names []string) {
	note := func(differs bool, name string, keep func()) {
		if differs {
			names = append(names, name)
			keep()
		}
	}
	note(p.Title != other.Title, "title", func() { c.Title = &p.Title })
	note(p.Description != other.Description, "description", func() { c.Description = &p.Description })
	note(p.Theme != other.Theme, "theme", func() { c.Theme = &p.Theme })
	note(p.Accent != other.Accent, "accent", func() { c.Accent = &p.Accent })
	note(!slices.Equal(p.Capabilities, other.Capabilities), "capabilities", func() { c.Capabilities = &p.Capabilities })
	note(!slices.Equal(p.Phrases, other.Phrases), "phrases", func() {
		c.Phrases = mapped(p.Phrases,
			func(x Phrase) phrase { return phrase(x) })
	})
	note(!slices.Equal(p.Toggles, other.Toggles), "toggles", func() {
		c.Toggles = mapped(p.Toggles,
			func(x Toggle) toggle { return toggle(x) })
	})
	note(p.SupportURL != other.SupportURL, "support link", func() { c.SupportURL = &p.SupportURL })
	note(p.PrivacyURL != other.PrivacyURL, "privacy link", func() { c.PrivacyURL = &p.PrivacyURL })
	return c, names
}

// whole returns a config with every field of the page, for storing.
func whole(p Page) config {
	return config{&p.Title, &p.Description, &p.Theme, &p.Accent, &p.Capabilities,
		mapped(p.Phrases, func(x Phrase) phrase { return phrase(x) }), mapped(p.Toggles,
			func(x Toggle) toggle { return toggle(x) }),
		&p.SupportURL, &p.PrivacyURL}
}

// change converts the fields to a Change that has no version.
func (c config) change() Change {
	change := Change{Title: c.Title, Description: c.Description, Theme: c.Theme, Accent: c.Accent,
		Capabilities: c.Capabilities,
		SupportURL:   c.SupportURL, PrivacyURL: c.PrivacyURL}
	if c.Phrases != nil {
		change.Phrases = mapped(*c.Phrases, func(x phrase) Phrase { return Phrase(x) })
	}
	if c.Toggles != nil {
		change.Toggles = mapped(*c.Toggles, func(x toggle) Toggle { return Toggle(x) })
	}
	return change
}

func mapped[A, B any](from []A, f func(A) B) *[]B {
	to := make([]B, len(from))
	for i, x := range from {
		to[i] = f(x)
	}
	return &to
}
