package web

import (
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/service-dev/service/docs"
)

// docsPage is the data of the template "docs": one page of the documentation, or the list of all pages.
type docsPage struct {
	Title   string
	Summary string
	ID      string // of the page; "" for the list
	Topics  []docsTopic
	Body    template.HTML // rendered by markdown, which escapes the text
	Outline []docsLink
	Next    []docsLink
	// Before and After are the neighbours in reading order; the zero value if there is none.
	Before, After docsLink
	// Search is set for the results of a search, which may have none.
	Search *docsSearch
}

type docsTopic struct {
	Title string
	Pages []docsLink
}

type docsLink struct {
	Title, URL, Summary string
	Here                bool
}

// docsSet is the documentation by path. It is rendered only once, because it is the same for all readers.
type docsSet map[string]docsFile

type docsFile struct {
	body []byte
	kind string
}

const (
	markdownType = "text/markdown; charset=utf-8"
	htmlType     = "text/html; charset=utf-8"
	plainType    = "text/plain; charset=utf-8"
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

// mountDocs adds /docs, /docs/<id>, its source /docs/<id>.md, and llms.txt. These need no account, set no cookie and
// are the same for every reader, so caches may store them. The pages are rendered on the first request.
func (w *Web) mountDocs(mux *http.ServeMux) {
	set := sync.OnceValues(w.renderDocs)
	serve := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		pages, err := set()
		if err != nil {
			w.failWith(err).ServeHTTP(rw, r)
			return
		}
		w.serveDocs(pages, rw, r)
	})
	for _, pattern := range []string{"GET /docs", "GET /docs/{page}", "GET /docs/panels/{picture}", "GET /llms.txt"} {
		mux.Handle(pattern, serve)
	}
	mux.HandleFunc("GET /docs/search", w.searchDocs)
	mux.Handle("GET /docs/{$}", http.RedirectHandler("/docs", http.StatusMovedPermanently))
}

func (w *Web) serveDocs(set docsSet, rw http.ResponseWriter, r *http.Request) {
	file, ok := set[r.URL.Path]
	if !ok {
		w.failWith(errNotFound).ServeHTTP(rw, r)
		return
	}
	w.sendDocs(file, rw, r)
}

func (w *Web) sendDocs(file docsFile, rw http.ResponseWriter, r *http.Request) {
	setHeaders(rw.Header())
	rw.Header().Set("Cache-Control", "public, max-age=300")
	serveContent(rw, r, file.kind, hashOf(file.body, 8), inMemory(file.body))
}

func (w *Web) renderDocs() (docsSet, error) {
	set := docsSet{}
	list := docsPage{Title: "Documentation", Topics: docsTopics(""),
		Summary: "Write apps for smart glasses with your coding agent, and prove that they work."}
	if err := w.addDocs(set, "/docs", list); err != nil {
		return set, err
	}
	pages := docs.Pages()
	for i, p := range pages {
		page := docsPage{Title: p.Title, Summary: p.Summary, ID: p.ID, Topics: docsTopics(p.ID), Next: docsNext(p)}
		if i > 0 {
			page.Before = docsLinkTo(pages[i-1])
		}
		if i+1 < len(pages) {
			page.After = docsLinkTo(pages[i+1])
		}
		page.Body, page.Outline = markdown(p.Markdown)
		if err := w.addDocs(set, "/docs/"+p.ID, page); err != nil {
			return set, err
		}
		set["/docs/"+p.ID+".md"] = docsFile{[]byte(p.Markdown), markdownType}
	}
	pictures, err := panelFiles.ReadDir("panels")
	if err != nil {
		return set, err
	}
	for _, f := range pictures {
		picture, err := panelFiles.ReadFile("panels/" + f.Name())
		if err != nil {
			return set, err
		}
		set[panelsPath+f.Name()] = docsFile{picture, pngType}
	}
	text := docsFile{[]byte(llms()), plainType}
	set["/llms.txt"], set["/docs/llms.txt"] = text, text
	return set, nil
}

func (w *Web) addDocs(set docsSet, path string, page docsPage) error {
	body, err := w.execute("docs", view{Version: w.Version, Support: w.SupportContact, Data: page})
	if err != nil {
		return fmt.Errorf("render %s: %w", path, err)
	}
	set[path] = docsFile{body, htmlType}
	return nil
}

func docsLinkTo(p docs.Page) docsLink {
	return docsLink{Title: p.Title, URL: "/docs/" + p.ID, Summary: p.Summary}
}

func docsTopics(here string) []docsTopic {
	var list []docsTopic
	for _, topic := range docs.Topics() {
		t := docsTopic{Title: topicTitles[topic]}
		for _, p := range docs.Pages() {
			if p.Topic == topic {
				link := docsLinkTo(p)
				link.Here = p.ID == here
				t.Pages = append(t.Pages, link)
			}
		}
		list = append(list, t)
	}
	return list
}

// docsNext lists further reading by title.
func docsNext(p docs.Page) []docsLink {
	var list []docsLink
	for _, id := range p.Next {
		pageID, anchor, _ := strings.Cut(id, "#")
		page, ok := docs.Find(pageID)
		if !ok {
			continue
		}
		title := page.Title
		for _, s := range page.Sections {
			if anchor != "" && s.ID == id {
				title += ": " + s.Title
			}
		}
		list = append(list, docsLink{Title: title, URL: "/docs/" + id})
	}
	return list
}

// llms returns the table of contents for programs (llmstxt.org), with one line per page that links to its Markdown.
func llms() string {
	var out strings.Builder
	out.WriteString("# The service\n\n> Coding agents build apps for smart glasses with it: " +
		"an open protocol, simulators, tools, tests. Each page below is Markdown.\n")
	for _, topic := range docsTopics("") {
		fmt.Fprintf(&out, "\n## %s\n\n", topic.Title)
		for _, p := range topic.Pages {
			fmt.Fprintf(&out, "- [%s](%s.md): %s\n", p.Title, p.URL, p.Summary)
		}
	}
	return out.String()
}
