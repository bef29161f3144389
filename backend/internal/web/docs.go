package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/service-dev/service/proto/docs"
)

// docsPage is what the template "docs" shows: one page of the documentation, or the list of all without one.
type docsPage struct {
	Title   string
	Summary string
	ID      string // of the page; empty on the list
	Topics  []docsTopic
	Body    template.HTML // rendered by markdown, which escapes everything of the text
	Outline []docsLink
	Next    []docsLink
}

type docsTopic struct {
	Title string
	Pages []docsLink
}

type docsLink struct {
	Title, URL, Summary string
	Here                bool
}

// docsSet is the documentation by path, rendered once: it is the same for everybody.
type docsSet map[string]docsFile

type docsFile struct {
	body []byte
	kind string
	etag string
}

const (
	markdownType = "text/markdown; charset=utf-8"
	htmlType     = "text/html; charset=utf-8"
	plainType    = "text/plain; charset=utf-8"
)

// topicTitles are what people read instead of the words of searchDocs.
var topicTitles = map[string]string{
	"getting_started": "Getting started", "display": "Display", "custom_handlers": "Handlers", "voice_integration": "Voice",
	"library_api": "Library and protocol", "agent_e2e_testing": "Testing", "simulator_browser_mode": "Simulators and sessions",
	"toggles": "Settings", "assistant_runtime": "Assistant", "managed_gateway": "AI gateway", "conversation_memory": "Memory",
}

// mountDocs adds /docs, /docs/<id>, its twin /docs/<id>.md, and llms.txt. None needs an account, sets a cookie or differs
// by reader, so that every cache may keep it. The pages are rendered when the first one is asked for.
func (w *Web) mountDocs(mux *http.ServeMux) {
	set := sync.OnceValues(w.renderDocs)
	serve := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		pages, err := set()
		if err != nil {
			w.page(func(http.ResponseWriter, *http.Request) error { return err }).ServeHTTP(rw, r)
			return
		}
		w.serveDocs(pages, rw, r)
	})
	for _, pattern := range []string{"GET /docs", "GET /docs/{page}", "GET /llms.txt"} {
		mux.Handle(pattern, serve)
	}
	mux.Handle("GET /docs/{$}", http.RedirectHandler("/docs", http.StatusMovedPermanently))
}

func (w *Web) serveDocs(set docsSet, rw http.ResponseWriter, r *http.Request) {
	file, ok := set[r.URL.Path]
	if !ok {
		w.page(w.notFound).ServeHTTP(rw, r)
		return
	}
	h := rw.Header()
	setHeaders(h)
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("Content-Type", file.kind)
	h.Set("ETag", file.etag)
	if strings.Contains(r.Header.Get("If-None-Match"), file.etag) {
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = rw.Write(file.body) // the reader may be gone
}

func (w *Web) renderDocs() (docsSet, error) {
	set := docsSet{}
	list := docsPage{Title: "Documentation", Summary: "Write apps for smart glasses with your coding agent, and prove that they work.", Topics: docsTopics("")}
	if err := w.addDocs(set, "/docs", list); err != nil {
		return set, err
	}
	for _, p := range docs.Pages() {
		page := docsPage{Title: p.Title, Summary: p.Summary, ID: p.ID, Topics: docsTopics(p.ID), Next: docsNext(p)}
		page.Body, page.Outline = markdown(p.Markdown)
		if err := w.addDocs(set, "/docs/"+p.ID, page); err != nil {
			return set, err
		}
		set.add("/docs/"+p.ID+".md", markdownType, []byte(p.Markdown))
	}
	text := []byte(llms())
	set.add("/llms.txt", plainType, text)
	set.add("/docs/llms.txt", plainType, text)
	return set, nil
}

func (w *Web) addDocs(set docsSet, path string, page docsPage) error {
	t, err := w.templates.page("docs")
	if err != nil {
		return fmt.Errorf("rendering %s: %w", path, err)
	}
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, "layout", view{Version: w.Version, Support: w.SupportContact, Data: page}); err != nil {
		return fmt.Errorf("rendering %s: %w", path, err)
	}
	set.add(path, htmlType, out.Bytes())
	return nil
}

func (s docsSet) add(path, kind string, body []byte) {
	sum := sha256.Sum256(body)
	s[path] = docsFile{body: body, kind: kind, etag: `"` + hex.EncodeToString(sum[:8]) + `"`}
}

func docsTopics(here string) []docsTopic {
	var list []docsTopic
	for _, topic := range docs.Topics() {
		t := docsTopic{Title: topicTitles[topic]}
		for _, p := range docs.Pages() {
			if p.Topic == topic {
				t.Pages = append(t.Pages, docsLink{Title: p.Title, URL: "/docs/" + p.ID, Summary: p.Summary, Here: p.ID == here})
			}
		}
		list = append(list, t)
	}
	return list
}

// docsNext names what to read next by the titles of the sections.
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

// llms is the documentation's table of contents for programs (llmstxt.org): one line a page, leading to its Markdown.
func llms() string {
	var out strings.Builder
	out.WriteString("# The service\n\n> Coding agents build apps for smart glasses with it: an open protocol, simulators, tools, tests. Each page below is Markdown.\n")
	for _, topic := range docsTopics("") {
		fmt.Fprintf(&out, "\n## %s\n\n", topic.Title)
		for _, p := range topic.Pages {
			fmt.Fprintf(&out, "- [%s](%s.md): %s\n", p.Title, p.URL, p.Summary)
		}
	}
	return out.String()
}
