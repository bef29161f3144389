package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"
	"sync"
)

//go:embed templates/*.html
var templateFiles embed.FS

// view is the data of every template; Data is specific to the page.
type view struct {
	Account   *Account // nil if the visitor is not signed in
	CSRF      string   // value of the hidden field "csrf" in every form
	Support   string
	Version   string
	Dashboard bool // whether pages below /account exist
	Data      any
}

// render writes the page templates/<name>.html inside the layout.
func (w *Web) render(c *call, status int, name string, data any) error {
	v := view{
		CSRF: w.csrfToken(c), Support: w.SupportContact, Version: w.Version, Dashboard: w.Dashboard != nil, Data: data,
	}
	if c.isSignedIn() {
		v.Account = &c.account
	}
	page, err := w.execute(name, v)
	if err != nil {
		return err
	}
	c.rw.Header().Set("Content-Type", htmlType)
	c.rw.WriteHeader(status)
	_, _ = c.rw.Write(page) // the browser may have disconnected
	return nil
}

// execute renders a page completely before it is sent, so that a template error still leads to an error page.
func (w *Web) execute(name string, v view) ([]byte, error) {
	parse, ok := w.templates[name]
	if !ok {
		return nil, fmt.Errorf("render page %s: no such template", name)
	}
	t, err := parse()
	if err != nil {
		return nil, fmt.Errorf("parse page %s: %w", name, err)
	}
	var page bytes.Buffer
	if err := t.ExecuteTemplate(&page, "layout", v); err != nil {
		return nil, fmt.Errorf("render page %s: %w", name, err)
	}
	return page.Bytes(), nil
}

// templateSet contains the pages by name. Each page is parsed when it is first shown. Most backends are embedded and
// rarely show their pages, and parsing all pages would use more memory than the rest of an idle backend.
type templateSet map[string]func() (*template.Template, error)

// findTemplates combines each page with the layout and the shared parts, whose file names start with an underscore.
func findTemplates(assets assetSet) (templateSet, error) {
	functions := template.FuncMap{"asset": assets.url, "modules": assets.modules, "platform": platformName}
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("list templates: %w", err)
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
