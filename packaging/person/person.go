// Package person is somebody at a browser without scripts who links an install: cookies, pages, forms. It is for
// measuring and soaking programs; it knows the pages of a backend from outside only, and nothing of who asks.
package person

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Person keeps cookies between pages. Make one with New.
type Person struct{ client *http.Client }

// New is a person whom no backend knows yet.
func New() (*Person, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	return &Person{client: &http.Client{Jar: jar, Timeout: 30 * time.Second}}, nil
}

// Client is the person's browser, for what is no page.
func (p *Person) Client() *http.Client { return p.client }

// Approve opens a verification page, signs up with email and password, and approves.
func (p *Person) Approve(verificationURL, email, password string) error {
	return p.approve(verificationURL, "/signup", "email", email, "password", password, "accept", "yes")
}

// ApproveAgain is Approve for somebody who has an account.
func (p *Person) ApproveAgain(verificationURL, email, password string) error {
	u, err := url.Parse(verificationURL)
	if err != nil {
		return err
	}
	signIn := u.Scheme + "://" + u.Host + "/signin?next=" + url.QueryEscape(u.RequestURI())
	return p.approve(signIn, "/signin", "email", email, "password", password)
}

// approve opens a page, fills in its form for signing up or in, which leads to the verification page, and approves.
func (p *Person) approve(address, form string, fields ...string) error {
	page, at, err := p.Get(address)
	if err != nil {
		return err
	}
	if page, at, err = p.submit(page, at, form, fields...); err != nil {
		return err
	}
	if _, at, err = p.submit(page, at, "/activate/approve"); err != nil {
		return err
	}
	if at.Path != "/activate/approved" {
		return fmt.Errorf("approving led to %s", at.Path)
	}
	return nil
}

var (
	hiddenInput = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
	formAction  = regexp.MustCompile(`(?s)<form[^>]*action="([^"]+)".*?</form>`)
)

// Get opens a page; at is where redirects led.
func (p *Person) Get(address string) (page string, at *url.URL, err error) {
	resp, err := p.client.Get(address)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), resp.Request.URL, err
}

// submit sends the page's form for a path, with its hidden fields and more, which are names and values in turn.
func (p *Person) submit(page string, at *url.URL, path string, more ...string) (string, *url.URL, error) {
	for _, form := range formAction.FindAllStringSubmatch(page, -1) {
		target, err := at.Parse(strings.ReplaceAll(form[1], "&amp;", "&"))
		if err != nil || target.Path != path {
			continue
		}
		fields := url.Values{}
		for _, in := range hiddenInput.FindAllStringSubmatch(form[0], -1) {
			fields.Set(in[1], strings.ReplaceAll(in[2], "&amp;", "&"))
		}
		for i := 0; i+1 < len(more); i += 2 {
			fields.Set(more[i], more[i+1])
		}
		return p.post(target, fields)
	}
	return "", nil, fmt.Errorf("the page at %s has no form for %s", at.Path, path)
}

// post sends fields as the backend's own page does.
func (p *Person) post(target *url.URL, fields url.Values) (string, *url.URL, error) {
	req, err := http.NewRequest(http.MethodPost, target.String(), strings.NewReader(fields.Encode()))
	if err != nil {
		return "", nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", target.Scheme+"://"+target.Host)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := p.client.Do(req)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), resp.Request.URL, err
}
