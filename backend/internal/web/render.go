package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// view is what every template gets. A page's own values are under Data.
type view struct {
	Account *Account // nil when nobody is signed in
	CSRF    string   // for the hidden field "csrf" of every form
	Support string
	Version string
	// Dashboard says whether there are pages below /account to lead to.
	Dashboard bool
	Data      any
}

// render writes the page templates/<name>.html inside the layout. The page is rendered before the first byte goes out,
// so a template error still becomes an error page.
func (w *Web) render(rw http.ResponseWriter, r *http.Request, status int, name string, data any) error {
	t, ok := w.templates[name]
	if !ok {
		return fmt.Errorf("rendering page %s: no such template", name)
	}
	v := view{
		Account: currentBrowser(r).account, CSRF: w.csrfToken(r),
		Support: w.SupportContact, Version: w.Version, Dashboard: w.Dashboard != nil, Data: data,
	}
	var page bytes.Buffer
	if err := t.ExecuteTemplate(&page, "layout", v); err != nil {
		return fmt.Errorf("rendering page %s: %w", name, err)
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	rw.WriteHeader(status)
	_, _ = rw.Write(page.Bytes()) // the browser may be gone
	return nil
}

// parseTemplates makes one set per page: the layout, the shared parts (files that begin with an underscore), the page.
func parseTemplates(assets assetSet) (map[string]*template.Template, error) {
	base, err := template.New("").Funcs(template.FuncMap{"asset": assets.url, "platform": platformName}).ParseFS(templateFiles, "templates/_*.html")
	if err != nil {
		return nil, fmt.Errorf("parsing shared templates: %w", err)
	}
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("listing templates: %w", err)
	}
	pages := map[string]*template.Template{}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if strings.HasPrefix(name, "_") {
			continue
		}
		set, err := base.Clone()
		if err != nil {
			return nil, fmt.Errorf("copying shared templates: %w", err)
		}
		if pages[name], err = set.ParseFS(templateFiles, file); err != nil {
			return nil, fmt.Errorf("parsing template %s: %w", name, err)
		}
	}
	return pages, nil
}

// assetSet holds the static files by name; their address carries a hash of the content, so browsers may keep them.
type assetSet map[string]asset

type asset struct {
	body    []byte
	kind    string
	version string
	gzipped bool
}

func loadAssets() (assetSet, error) {
	set := assetSet{}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return nil, fmt.Errorf("listing assets: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		body, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading asset %s: %w", e.Name(), err)
		}
		set.add(e.Name(), body, false)
	}
	return set, set.addProgram()
}

func (s assetSet) add(name string, body []byte, gzipped bool) {
	sum := sha256.Sum256(body)
	s[name] = asset{body: body, kind: contentType(name), version: hex.EncodeToString(sum[:6]), gzipped: gzipped}
}

// contentType does not leave scripts and styles to the machine's MIME table, which may be wrong or missing.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".wasm":
		return "application/wasm"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// url is the template function "asset": the address of a static file.
func (s assetSet) url(name string) (string, error) {
	a, ok := s[name]
	if !ok {
		return "", fmt.Errorf("no asset %s", name)
	}
	return "/assets/" + name + "?v=" + a.version, nil
}

func (w *Web) asset(rw http.ResponseWriter, r *http.Request) {
	a, ok := w.assets[r.PathValue("name")]
	if !ok {
		w.page(w.notFound).ServeHTTP(rw, r)
		return
	}
	h := rw.Header()
	setHeaders(h)
	h.Set("Content-Type", a.kind)
	// Without the version (a module importing another by name) a browser asks each time whether its copy still holds.
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+a.version+`"`)
	if r.URL.Query().Get("v") == a.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if r.Header.Get("If-None-Match") == h.Get("ETag") {
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	if a.gzipped {
		h.Add("Vary", "Accept-Encoding")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			a.unpackTo(rw)
			return
		}
		h.Set("Content-Encoding", "gzip")
	}
	_, _ = rw.Write(a.body)
}
