// Package docs turns the documentation into pages: it renders its Markdown, adds pictures of display trees, and shows
// search results. It serves no HTTP.
package docs

import (
	"fmt"
	"html/template"
	"strings"

	manual "github.com/service-dev/service/docs"
)

// Page is one page of the documentation, the list of all pages, or the results of a search.
type Page struct {
	Title   string
	Summary string
	ID      string // ID of the page; "" for the list
	Topics  []Topic
	Body    template.HTML // rendered by markdown, which escapes the text
	Outline []Link
	Next    []Link
	// Before and After are the neighbours in reading order; the zero value if there is none.
	Before, After Link
	// Search is set for the results of a search, which may have none.
	Search *Results
}

// Topic is a topic with its pages.
type Topic struct {
	Title string
	Pages []Link
}

// Link leads to a page or a section. Here is set for the page that contains the link.
type Link struct {
	Title, URL, Summary string
	Here                bool
}

// Files is the documentation by path. It is the same for all readers.
type Files map[string]File

// File is a file and its content type.
type File struct {
	Body []byte
	Type string
}

const (
	markdownType = "text/markdown; charset=utf-8"
	htmlType     = "text/html; charset=utf-8"
	plainType    = "text/plain; charset=utf-8"
	pngType      = "image/png"
)

// topicTitles are the titles of the topics of searchDocs.
var topicTitles = map[string]string{
	"getting_started":        "Getting started",
	"display":                "Display",
	"custom_handlers":        "Handlers",
	"voice_integration":      "Voice",
	"library_api":            "Library and protocol",
	"agent_e2e_testing":      "Testing",
	"simulator_browser_mode": "Simulators and sessions",
	"toggles":                "Settings",
	"assistant_runtime":      "Assistant",
	"managed_gateway":        "AI gateway",
	"conversation_memory":    "Memory",
}

// Render returns every page at /docs/<id>, its source at /docs/<id>.md, the list of pages at /docs, pictures, and
// llms.txt. html renders a page as HTML.
func Render(html func(Page) ([]byte, error)) (Files, error) {
	files := Files{}
	add := func(path string, page Page) error {
		body, err := html(page)
		if err != nil {
			return fmt.Errorf("render %s: %w", path, err)
		}
		files[path] = File{body, htmlType}
		return nil
	}
	list := Page{Title: "Documentation", Topics: topicsAt(""),
		Summary: "Write apps for smart glasses with your coding agent, and prove that they work."}
	if err := add("/docs", list); err != nil {
		return files, err
	}
	pages := manual.Pages()
	for i, p := range pages {
		page := Page{Title: p.Title, Summary: p.Summary, ID: p.ID, Topics: topicsAt(p.ID), Next: furtherReading(p)}
		if i > 0 {
			page.Before = linkTo(pages[i-1])
		}
		if i+1 < len(pages) {
			page.After = linkTo(pages[i+1])
		}
		page.Body, page.Outline = markdown(p.Markdown)
		if err := add("/docs/"+p.ID, page); err != nil {
			return files, err
		}
		files["/docs/"+p.ID+".md"] = File{[]byte(p.Markdown), markdownType}
	}
	pictures, err := panelFiles.ReadDir("panels")
	if err != nil {
		return files, err
	}
	for _, f := range pictures {
		picture, err := panelFiles.ReadFile("panels/" + f.Name())
		if err != nil {
			return files, err
		}
		files[panelsPath+f.Name()] = File{picture, pngType}
	}
	text := File{[]byte(llms()), plainType}
	files["/llms.txt"], files["/docs/llms.txt"] = text, text
	return files, nil
}

func linkTo(p manual.Page) Link {
	return Link{Title: p.Title, URL: "/docs/" + p.ID, Summary: p.Summary}
}

func topicsAt(here string) []Topic {
	var list []Topic
	for _, topic := range manual.Topics() {
		t := Topic{Title: topicTitles[topic]}
		for _, p := range manual.Pages() {
			if p.Topic == topic {
				link := linkTo(p)
				link.Here = p.ID == here
				t.Pages = append(t.Pages, link)
			}
		}
		list = append(list, t)
	}
	return list
}

// furtherReading lists further reading by title.
func furtherReading(p manual.Page) []Link {
	var list []Link
	for _, id := range p.Next {
		pageID, anchor, _ := strings.Cut(id, "#")
		page, ok := manual.Find(pageID)
		if !ok {
			continue
		}
		title := page.Title
		for _, s := range page.Sections {
			if anchor != "" && s.ID == id {
				title += ": " + s.Title
			}
		}
		list = append(list, Link{Title: title, URL: "/docs/" + id})
	}
	return list
}

// llms returns the table of contents for programs (llmstxt.org), with one line per page that links to its Markdown.
func llms() string {
	var out strings.Builder
	out.WriteString("# The service\n\n> Coding agents build apps for smart glasses with it: " +
		"an open protocol, simulators, tools, tests. Each page below is Markdown.\n")
	for _, topic := range topicsAt("") {
		fmt.Fprintf(&out, "\n## %s\n\n", topic.Title)
		for _, p := range topic.Pages {
			fmt.Fprintf(&out, "- [%s](%s.md): %s\n", p.Title, p.URL, p.Summary)
		}
	}
	return out.String()
}
