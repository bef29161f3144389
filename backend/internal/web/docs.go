package web

import (
	"net/http"
	"sync"

	"github.com/service-dev/service/backend/internal/web/docs"
)

// mountDocs adds /docs, /docs/<id>, its source /docs/<id>.md, and llms.txt. These need no account, set no cookie and
// are the same for every reader, so caches may store them. The pages are rendered on the first request.
func (w *Web) mountDocs(mux *http.ServeMux) {
	rendered := sync.OnceValues(func() (docs.Files, error) { return docs.Render(w.docsHTML) })
	serve := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		files, err := rendered()
		if err != nil {
			w.failWith(err).ServeHTTP(rw, r)
			return
		}
		file, ok := files[r.URL.Path]
		if !ok {
			w.failWith(errNotFound).ServeHTTP(rw, r)
			return
		}
		sendDocs(file.Body, file.Type, rw, r)
	})
	for _, pattern := range []string{"GET /docs", "GET /docs/{page}", "GET /docs/panels/{picture}", "GET /llms.txt"} {
		mux.Handle(pattern, serve)
	}
	mux.HandleFunc("GET /docs/search", w.searchDocs)
	mux.Handle("GET /docs/{$}", http.RedirectHandler("/docs", http.StatusMovedPermanently))
}

func (w *Web) docsHTML(p docs.Page) ([]byte, error) {
	return w.execute("docs", view{Version: w.Version, Support: w.SupportContact, Data: p})
}

func sendDocs(body []byte, contentType string, rw http.ResponseWriter, r *http.Request) {
	setHeaders(rw.Header())
	rw.Header().Set("Cache-Control", "public, max-age=300")
	serveContent(rw, r, contentType, hashOf(body, 8), inMemory(body))
}

// searchDocs serves GET /docs/search?q= as a page, so that the search works without scripts.
func (w *Web) searchDocs(rw http.ResponseWriter, r *http.Request) {
	query := docs.Query(r.URL.Query().Get("q"))
	if query == "" {
		http.Redirect(rw, r, "/docs", http.StatusSeeOther)
		return
	}
	body, err := w.docsHTML(docs.Search(query))
	if err != nil {
		w.failWith(err).ServeHTTP(rw, r)
		return
	}
	sendDocs(body, htmlType, rw, r)
}
