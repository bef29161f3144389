package web

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// visitor is one browser with its own cookies. It follows redirects only when told to.
type visitor struct {
	t      *testing.T
	site   string
	client *http.Client
	host   string // host that the browser uses instead of the site's; "" for none
	page   string // body of the last response
	header http.Header
	status int
}

func visit(t *testing.T, site *httptest.Server) *visitor {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	return &visitor{t: t, site: site.URL, client: &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (v *visitor) do(req *http.Request) *visitor {
	v.t.Helper()
	if v.host != "" {
		req.Host = v.host
	}
	res, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	v.page, v.header, v.status = string(body), res.Header, res.StatusCode
	return v
}

func (v *visitor) get(path string) *visitor {
	v.t.Helper()
	req, err := http.NewRequest(http.MethodGet, v.site+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	return v.do(req)
}

// post sends a form like our own pages, unless the headers differ.
func (v *visitor) post(path string, form url.Values, header ...string) *visitor {
	v.t.Helper()
	req, err := http.NewRequest(http.MethodPost, v.site+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if len(header) == 0 {
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return v.do(req)
}

var hidden = regexp.MustCompile(`name="(csrf|seen)" value="([^"]*)"`)

// tokens returns the hidden fields of the last page.
func (v *visitor) tokens() url.Values {
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(v.page, -1) {
		form.Set(m[1], m[2])
	}
	return form
}

func (v *visitor) want(status int, texts ...string) *visitor {
	v.t.Helper()
	if v.status != status {
		v.t.Fatalf("status %d, want %d; page:\n%s", v.status, status, v.page)
	}
	for _, text := range texts {
		if !strings.Contains(v.page, text) {
			v.t.Fatalf("%q is missing from the page:\n%s", text, v.page)
		}
	}
	return v
}

// signUp creates an account with the form on the last page, and follows the redirect.
func (v *visitor) signUp(email, next string) *visitor {
	v.t.Helper()
	form := v.tokens()
	form.Set("email", email)
	form.Set("password", "correct horse battery")
	form.Set("accept", "yes")
	v.post(withNext("/signup", next), form).want(http.StatusSeeOther)
	return v.get(v.header.Get("Location"))
}

// onward follows the last response's redirect within this site.
func (v *visitor) onward() *visitor {
	v.t.Helper()
	v.want(http.StatusSeeOther)
	return v.get(v.header.Get("Location"))
}

// send posts the last page's tokens and the given pairs.
func (v *visitor) send(path string, pairs ...string) *visitor {
	v.t.Helper()
	form := v.tokens()
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return v.post(path, form)
}

// another returns a second browser on the same site.
func another(v *visitor) *visitor {
	v.t.Helper()
	return visit(v.t, &httptest.Server{URL: v.site})
}
