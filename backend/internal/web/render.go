package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
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
	t, err := w.templates.page(name)
	if err != nil {
		return fmt.Errorf("rendering page %s: %w", name, err)
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

// templateSet holds the pages by name. Each is parsed when it is first shown: most backends are embedded ones whose
// pages are seldom looked at, and all pages parsed take more memory than everything else at rest.
type templateSet map[string]func() (*template.Template, error)

// findTemplates names one set per page: the layout, the shared parts (files that begin with an underscore), the page.
func findTemplates(assets assetSet) (templateSet, error) {
	functions := template.FuncMap{"asset": assets.url, "platform": platformName}
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("listing templates: %w", err)
	}
	pages := templateSet{}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if strings.HasPrefix(name, "_") {
			continue
		}
		pages[name] = sync.OnceValues(func() (*template.Template, error) {
			return template.New("").Funcs(functions).ParseFS(templateFiles, "templates/_*.html", file)
		})
	}
	return pages, nil
}

func (s templateSet) page(name string) (*template.Template, error) {
	parse, ok := s[name]
	if !ok {
		return nil, errors.New("no such template")
	}
	return parse()
}

// assetSet holds the static files by name; their address carries a hash of the content, so browsers may keep them.
type assetSet map[string]asset

type asset struct {
	kind    string
	gzipped bool
	load    func() content // once, when it is first needed
}

type content struct {
	body    []byte
	version string
}

func findAssets() (assetSet, error) {
	set := assetSet{}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return nil, fmt.Errorf("listing assets: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			set.add(e.Name(), embedded(assetFiles, "assets/"+e.Name()), false)
		}
	}
	set.addProgram()
	return set, nil
}

// embedded reads a file that is known to be there.
func embedded(files embed.FS, name string) func() []byte {
	return func() []byte {
		body, err := files.ReadFile(name)
		if err != nil {
			panic(err)
		}
		return body
	}
}

func (s assetSet) add(name string, read func() []byte, gzipped bool) {
	s[name] = asset{kind: contentType(name), gzipped: gzipped, load: sync.OnceValue(func() content {
		body := read()
		sum := sha256.Sum256(body)
		return content{body: body, version: hex.EncodeToString(sum[:6])}
	})}
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
	return "/assets/" + name + "?v=" + a.load().version, nil
}

func (w *Web) asset(rw http.ResponseWriter, r *http.Request) {
	a, ok := w.assets[r.PathValue("name")]
	if !ok {
		w.page(w.notFound).ServeHTTP(rw, r)
		return
	}
	c := a.load()
	h := rw.Header()
	setHeaders(h)
	h.Set("Content-Type", a.kind)
	// Without the version (a module importing another by name) a browser asks each time whether its copy still holds.
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+c.version+`"`)
	if r.URL.Query().Get("v") == c.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if r.Header.Get("If-None-Match") == h.Get("ETag") {
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	if a.gzipped {
		h.Add("Vary", "Accept-Encoding")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			c.unpackTo(rw)
			return
		}
		h.Set("Content-Encoding", "gzip")
	}
	_, _ = rw.Write(c.body)
}
