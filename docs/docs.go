// Package docs is the bundled documentation: embedded Markdown pages for agents (searchDocs, MCP resources) and for
// users (the backend's /docs). Facts from proto and glasses, such as usage events and device models, are generated
// into the pages, so that they cannot contradict the code. The package is independent of tools and HTTP.
package docs

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed pages/*.md
var files embed.FS

// Topics returns the topics of searchDocs in reading order.
func Topics() []string {
	return []string{"getting_started", "display", "custom_handlers", "voice_integration", "library_api",
		"agent_e2e_testing", "simulator_browser_mode", "toggles", "assistant_runtime", "managed_gateway",
		"conversation_memory"}
}

// Page is one page of the documentation.
type Page struct {
	// ID identifies the page in URLs and passages, e.g. getting-started.
	ID string
	// Title is the page's name, Topic is one of Topics, Summary is one sentence.
	Title, Topic, Summary string
	// Markdown begins with the title as the first heading.
	Markdown string
	// Next lists what to read next: ids of pages, or of sections in the form page#anchor.
	Next []string
	// Sections are the page's parts in order; the first one is the text before any heading.
	Sections []Section
	// Reference is true for a reference page. Searches prefer other pages, which explain how to do something.
	Reference bool

	order int
}

// Section is a part of a page, from one heading to the next of any level.
type Section struct {
	// ID is page or page#anchor.
	ID string
	// Title is the heading, or the page's title for the first section.
	Title string
	// Markdown is the text without the heading.
	Markdown string
}

var load = sync.OnceValue(func() []Page {
	pages, err := read()
	if err != nil {
		panic("docs: parse embedded pages: " + err.Error()) // every test detects a mistake in a page
	}
	return pages
})

// Pages returns all pages, by topic and then in reading order. The result is shared and must not be modified.
func Pages() []Page { return load() }

// Find returns the page with the given id.
func Find(id string) (Page, bool) {
	pages := Pages()
	i := slices.IndexFunc(pages, func(p Page) bool { return p.ID == id })
	if i < 0 {
		return Page{}, false
	}
	return pages[i], true
}

func read() ([]Page, error) {
	entries, err := files.ReadDir("pages")
	if err != nil {
		return nil, err
	}
	var pages []Page
	for _, e := range entries {
		data, err := files.ReadFile("pages/" + e.Name())
		if err != nil {
			return nil, err
		}
		p, err := parse(strings.TrimSuffix(e.Name(), ".md"), string(data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		pages = append(pages, p)
	}
	rank := map[string]int{}
	for i, t := range Topics() {
		rank[t] = i
	}
	slices.SortFunc(pages, func(a, b Page) int {
		return cmp.Or(cmp.Compare(rank[a.Topic], rank[b.Topic]), cmp.Compare(a.order, b.order), cmp.Compare(a.ID, b.ID))
	})
	return pages, nil
}

// parse parses the front matter and the text of a page. It replaces a line {{name}} with generated text.
func parse(name, text string) (Page, error) {
	head, body, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	if !ok || !strings.HasPrefix(text, "---\n") {
		return Page{}, fmt.Errorf("missing front matter")
	}
	p := Page{}
	head = strings.Clone(head) // cloned so that the page does not keep its file in memory
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "id":
			p.ID = value
		case "title":
			p.Title = value
		case "topic":
			p.Topic = value
		case "summary":
			p.Summary = value
		case "kind":
			if value != "reference" {
				return Page{}, fmt.Errorf("unknown kind %q", value)
			}
			p.Reference = true
		case "next":
			p.Next = strings.Fields(value)
		case "order":
			n, err := strconv.Atoi(value)
			if err != nil {
				return Page{}, fmt.Errorf("order: %w", err)
			}
			p.order = n
		default:
			return Page{}, fmt.Errorf("unknown front matter %q", key)
		}
	}
	if p.ID != name || p.Title == "" || p.Summary == "" || !slices.Contains(Topics(), p.Topic) {
		return Page{}, fmt.Errorf("front matter must have the file's id, a title, a known topic and a summary")
	}
	body, err := generate(body)
	p.Markdown = "# " + p.Title + "\n\n" + strings.TrimSpace(body) + "\n"
	p.Sections = sections(p)
	return p, err
}

// sections splits a page at its headings. The texts share memory with the page's text.
func sections(p Page) []Section {
	list := []Section{{ID: p.ID, Title: p.Title}}
	from, at := 0, 0 // start of the section's text, and start of the line
	code := false
	for line := range strings.Lines(p.Markdown) {
		start := at
		at += len(line)
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		level := strings.IndexFunc(line, func(r rune) bool { return r != '#' })
		if code || level < 1 || level > 4 || line[level] != ' ' {
			continue
		}
		if level > 1 {
			list[len(list)-1].Markdown = strings.TrimSpace(p.Markdown[from:start])
			title := strings.TrimSpace(line[level:])
			list = append(list, Section{ID: p.ID + "#" + Anchor(title), Title: title})
		}
		from = at
	}
	list[len(list)-1].Markdown = strings.TrimSpace(p.Markdown[from:])
	return list
}

// Anchor returns the id of a heading: lower-case letters, digits and dashes.
func Anchor(title string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			out.WriteRune(r)
		case r == ' ' || r == '-' || r == '_':
			out.WriteByte('-')
		}
	}
	return out.String()
}
