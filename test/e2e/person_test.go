//go:build unix

package e2e

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/service-dev/service/test/browser"
)

// All HTTP clients of these tests resolve the host names of embedded backends' pages as browsers do.
func init() { http.DefaultTransport = browser.Transport() }

// person is a user with a browser without scripts: only cookies and forms.
type person struct {
	t      *testing.T
	client *http.Client
	page   *html.Node
	at     *url.URL
	status int
	seen   *strings.Builder // if set, collects the text of every page
	mail   *mailbox         // receives the backend's mail; nil if the backend sends none
	mailed string           // token from the mail that confirmed the sign-up
}

func newPerson(t *testing.T) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &person{t: t, client: &http.Client{Jar: jar}}
}

func (p *person) open(address string) {
	p.t.Helper()
	resp, err := p.client.Get(address)
	p.take(resp, err)
}

func (p *person) take(resp *http.Response, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.seen != nil {
		p.seen.Write(body)
	}
	if p.page, err = html.Parse(strings.NewReader(string(body))); err != nil {
		p.t.Fatal(err)
	}
	p.at, p.status = resp.Request.URL, resp.StatusCode
}

// form finds the page's form whose action is the path, and returns its target and hidden fields.
func (p *person) form(path string) (action string, fields url.Values) {
	p.t.Helper()
	for n := range p.page.Descendants() {
		if n.Data != "form" {
			continue
		}
		target, err := p.at.Parse(attr(n, "action"))
		if err != nil || target.Path != path {
			continue
		}
		fields = url.Values{}
		for in := range n.Descendants() {
			if in.Data == "input" && attr(in, "type") == "hidden" {
				fields.Set(attr(in, "name"), attr(in, "value"))
			}
		}
		return target.String(), fields
	}
	p.t.Fatalf("%s (status %d) has no form for %s", p.at, p.status, path)
	return "", nil
}

// submit fills in and sends the form whose action is the path.
func (p *person) submit(path string, more ...string) {
	p.t.Helper()
	action, fields := p.form(path)
	for i := 0; i < len(more); i += 2 {
		fields.Set(more[i], more[i+1])
	}
	p.post(action, fields, "")
}

// post sends fields as a browser would from the given origin. An empty origin means the page's own.
func (p *person) post(action string, fields url.Values, origin string) {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodPost, action, strings.NewReader(fields.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	site := "same-origin"
	if origin == "" {
		origin = req.URL.Scheme + "://" + req.URL.Host
	} else {
		site = "cross-site"
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", origin)
	req.Header.Set("Sec-Fetch-Site", site)
	resp, err := p.client.Do(req)
	p.take(resp, err)
}

// signUp creates an account with the page's form, and follows the mailed link if the backend sends mail.
func (p *person) signUp(email string) {
	p.t.Helper()
	p.submit("/signup", "email", email, "password", password, "accept", "yes")
	if p.mail == nil {
		return
	}
	if p.at.Path != "/signup/sent" {
		p.t.Fatalf("sign-up led to %s (status %d), want /signup/sent", p.at, p.status)
	}
	p.mailed = p.mail.token(p.t, "/confirm")
	p.open(p.at.Scheme + "://" + p.at.Host + "/signup/confirm?token=" + p.mailed)
	p.submit("/signup/confirm", "password", password)
}

// approve signs up on the activation page and approves.
func (p *person) approve(verificationURL, email string) {
	p.t.Helper()
	p.open(verificationURL)
	p.signUp(email)
	p.submit("/activate/approve")
	if p.at.Path != "/activate/approved" {
		p.t.Fatalf("approval led to %s (status %d), want /activate/approved\n%s", p.at, p.status, p.text())
	}
}

// deny denies the code without signing in.
func (p *person) deny(verificationURL string) {
	p.t.Helper()
	p.open(verificationURL)
	p.submit("/activate/deny")
}

func (p *person) text() string {
	var b strings.Builder
	for n := range p.page.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "style" && n.Parent.Data != "script" {
			b.WriteString(strings.TrimSpace(n.Data) + "\n")
		}
	}
	return b.String()
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// grantAll sets every grant of a project to the level, or to the grant's highest level, on the page for the agents'
// access.
func (p *person) grantAll(project, level string) {
	p.t.Helper()
	for n := range p.page.Descendants() {
		if n.Data != "form" || attr(n, "method") != "post" {
			continue
		}
		target, err := p.at.Parse(attr(n, "action"))
		if err != nil {
			continue
		}
		fields, about, radios := url.Values{}, false, 0
		for in := range n.Descendants() {
			if in.Data != "input" {
				continue
			}
			switch attr(in, "type") {
			case "hidden":
				fields.Set(attr(in, "name"), attr(in, "value"))
				about = about || attr(in, "value") == project
			case "radio":
				if name := attr(in, "name"); fields.Get(name) != level {
					fields.Set(name, attr(in, "value"))
				}
				radios++
			}
		}
		if about = about || strings.Contains(target.String(), project); about && radios > 0 {
			p.post(target.String(), fields, "")
			return
		}
	}
	p.t.Fatalf("%s (status %d) has no form for the grants of %s", p.at, p.status, project)
}
