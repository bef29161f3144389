package connpage

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
)

var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
	//go:embed page/messages.txt
	pageMessages string

	pageTemplate = template.Must(template.New("page").Parse(pageHTML))
)

// FileName is the default name of the HTML file.
const FileName = "connect.html"

// File renders the page as the HTML file that ships with an app. name is the suggested file name.
func (s *Service) File(p Page) (name string, html []byte, err error) {
	d, err := Render(p, Live)
	return FileName, d.HTML, err
}

// State selects the content of a rendered page.
type State int

// States of a rendered page.
const (
	// Live follows the state that the embedding app reports.
	Live State = iota
	// Disconnected and Connected show sample data and run no script.
	Disconnected
	Connected
)

// Document is a rendered page. Policy is its Content-Security-Policy, to be sent as a header. The page contains the
// same policy. The policy omits frame-ancestors, which works only in a header and depends on where the page is
// served.
type Document struct {
	HTML   []byte
	Policy string
}

// view holds the data for the template.
type view struct {
	Page
	Can      []ability
	Scheme   string // content of the meta element color-scheme
	Policy   string
	Messages template.HTML
	Style    template.CSS
	Script   template.JS
	Live     bool
	On       bool // whether the sample shows connected glasses
}

// Render returns the page's HTML. Equal pages render to identical bytes.
func Render(p Page, state State) (Document, error) {
	v := view{Page: p, Can: abilities(p.Capabilities), Scheme: "light dark", Live: state == Live, On: state == Connected,
		// These values are constants and validated colours.
		Messages: template.HTML("<!--\n" + pageMessages + "-->"), //nolint:gosec // our own constant
		Style:    template.CSS(colours(p.Accent) + pageCSS),      //nolint:gosec // our own, with derived colours
		Script:   template.JS(pageJS)}                            //nolint:gosec // our own constant
	if p.Theme == "light" || p.Theme == "dark" {
		v.Scheme = p.Theme
	}
	v.Policy = policy(string(v.Style), pageJS, v.Live)
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, v); err != nil {
		return Document{}, fmt.Errorf("render connection page: %w", err)
	}
	return Document{HTML: out.Bytes(), Policy: v.Policy}, nil
}

// policy returns a Content-Security-Policy that allows only this style and, in a live page, this script.
func policy(style, script string, live bool) string {
	parts := []string{"default-src 'none'", "style-src " + hashOf(style), "base-uri 'none'", "form-action 'none'"}
	if live {
		parts = append(parts, "script-src "+hashOf(script))
	}
	return strings.Join(parts, "; ")
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
