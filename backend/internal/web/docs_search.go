package web

import (
	"net/http"
	"strings"

	"github.com/service-dev/service/docs/search"
)

// docsSearch holds the results of a search.
type docsSearch struct {
	Query string
	Found []docsResult
}

type docsResult struct {
	docsLink
	Topic   string
	Excerpt []search.Fragment
}

const (
	docsResults   = 20
	excerptLength = 220 // bytes
)

// searchDocs serves GET /docs/search?q= as a page, so that the search works without scripts. The tool searchDocs uses
// the same index.
func (w *Web) searchDocs(rw http.ResponseWriter, r *http.Request) {
	query := strings.Join(strings.Fields(strings.ToValidUTF8(r.URL.Query().Get("q"), "")), " ")
	if cut := []rune(query); len(cut) > search.MaxQuery {
		query = string(cut[:search.MaxQuery])
	}
	if query == "" {
		http.Redirect(rw, r, "/docs", http.StatusSeeOther)
		return
	}
	found := &docsSearch{Query: query}
	for _, p := range (search.Bundled{}).Search(query, "", docsResults) {
		found.Found = append(found.Found, docsResult{docsLink: docsLink{Title: p.Title, URL: "/docs/" + p.ID},
			Topic: topicTitles[p.Topic], Excerpt: search.Excerpt(p.Passage, query, excerptLength)})
	}
	page := docsPage{Title: "Search", Summary: "Search results in the documentation.", Search: found}
	body, err := w.execute("docs", view{Version: w.Version, Support: w.SupportContact, Data: page})
	if err != nil {
		w.failWith(err).ServeHTTP(rw, r)
		return
	}
	w.sendDocs(docsFile{body, htmlType}, rw, r)
}
