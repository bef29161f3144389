package cli

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	backendbrowser "github.com/service-dev/service/test/browser"
)

// person is a user whose browser does not run JavaScript.
type person struct{ client http.Client }

var (
	formPattern  = regexp.MustCompile(`(?s)<form[^>]*method="post"[^>]*action="([^"]*)"[^>]*>(.*?)</form>`)
	inputPattern = regexp.MustCompile(`<input[^>]*>`)
	namePattern  = regexp.MustCompile(`name="([^"]*)"`)
	valuePattern = regexp.MustCompile(`value="([^"]*)"`)
)

// decideOpened loads the page that the command opened, signs up, and approves or denies the code.
func decideOpened(ts *testscript.TestScript, what string) {
	jar, err := cookiejar.New(nil)
	ts.Check(err)
	p := &person{client: http.Client{Jar: jar, Transport: backendbrowser.Transport()}}
	page := openedURL(ts)
	at, body, err := p.get(page)
	ts.Check(err)
	if what == "approve" {
		at, body, err = p.submit(at, body, "signup", map[string]string{
			"email": fmt.Sprintf("ada-%d@example.com", time.Now().UnixNano()), "password": "correct horse battery staple",
			"privacy": "yes", "accept": "yes",
		})
		ts.Check(err)
	}
	_, body, err = p.submit(at, body, what, nil)
	ts.Check(err)
	if !strings.Contains(strings.ToLower(body), map[string]string{"approve": "approved", "deny": "denied"}[what]) {
		ts.Fatalf("the page does not confirm %s:\n%s", what, body)
	}
}

func (p *person) get(page string) (*url.URL, string, error) {
	r, err := p.client.Get(page)
	return read(r, err)
}

// submit posts the form whose action contains word, including its hidden fields.
func (p *person) submit(at *url.URL, body, word string, fields map[string]string) (*url.URL, string, error) {
	for _, form := range formPattern.FindAllStringSubmatch(body, -1) {
		action := html.UnescapeString(form[1])
		if !strings.Contains(action, word) {
			continue
		}
		values := url.Values{}
		for _, input := range inputPattern.FindAllString(form[2], -1) {
			name, value := namePattern.FindStringSubmatch(input), valuePattern.FindStringSubmatch(input)
			switch {
			case name == nil:
			case fields[name[1]] != "" && value == nil:
				values.Set(name[1], fields[name[1]])
			case value != nil && (strings.Contains(input, `type="hidden"`) || strings.Contains(input, `type="checkbox"`)):
				values.Set(name[1], html.UnescapeString(value[1]))
			case fields[name[1]] != "":
				values.Set(name[1], fields[name[1]])
			}
		}
		target, err := at.Parse(action)
		if err != nil {
			return nil, "", err
		}
		request, err := http.NewRequest(http.MethodPost, target.String(), strings.NewReader(values.Encode()))
		if err != nil {
			return nil, "", err
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Origin", at.Scheme+"://"+at.Host)
		r, err := p.client.Do(request)
		return read(r, err)
	}
	return nil, "", fmt.Errorf("no form for %s on %s:\n%s", word, at.Path, body)
}

func read(r *http.Response, err error) (*url.URL, string, error) {
	if err != nil {
		return nil, "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	return r.Request.URL, string(body), err
}
