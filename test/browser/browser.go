// Package browser acts as a browser without scripts for benchmarks and soak tests: it signs up and approves links at
// a backend. It uses only the backend's pages.
package browser

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/service-dev/service/internal/loopback"
)

// Browser keeps its cookies between pages. Create one with New.
type Browser struct{ client *http.Client }

// New returns a browser without cookies.
func New() (*Browser, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	return &Browser{client: &http.Client{Jar: jar, Timeout: 30 * time.Second, Transport: Transport()}}, nil
}

// Transport returns a transport that resolves names below localhost to this machine, as browsers do. Each call
// returns a transport with its own connections.
func Transport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err == nil && loopback.IsBrowserHost(host) && !loopback.IsHost(host) {
			address = net.JoinHostPort("localhost", port)
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return transport
}

// Client returns the HTTP client with the cookies, for requests other than pages.
func (b *Browser) Client() *http.Client { return b.client }

// Approve opens a verification page, signs up with email and password, and approves.
func (b *Browser) Approve(verificationURL, email, password string) error {
	return b.approve(verificationURL, "/signup", "email", email, "password", password, "accept", "yes")
}

// ApproveAgain is like Approve but signs in to an existing account.
func (b *Browser) ApproveAgain(verificationURL, email, password string) error {
	u, err := url.Parse(verificationURL)
	if err != nil {
		return err
	}
	signIn := u.Scheme + "://" + u.Host + "/signin?next=" + url.QueryEscape(u.RequestURI())
	return b.approve(signIn, "/signin", "email", email, "password", password)
}

// approve opens a verification page, submits its sign-up or sign-in form, which leads back to the page, and approves.
func (b *Browser) approve(address, form string, fields ...string) error {
	page, at, err := b.Get(address)
	if err != nil {
		return err
	}
	if page, at, err = b.Submit(page, at, form, fields...); err != nil {
		return err
	}
	if _, at, err = b.Submit(page, at, "/activate/approve"); err != nil {
		return err
	}
	if at.Path != "/activate/approved" {
		return fmt.Errorf("approval ended at unexpected page %s", at.Path)
	}
	return nil
}

var (
	hiddenInput = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
	formAction  = regexp.MustCompile(`(?s)<form[^>]*action="([^"]+)".*?</form>`)
)

// Get opens a page. It returns the page and its URL after redirects.
func (b *Browser) Get(address string) (page string, at *url.URL, err error) {
	return read(b.client.Get(address))
}

// Submit posts the current page's form for path, with its hidden fields and the fields in more, which alternates
// names and values.
func (b *Browser) Submit(page string, at *url.URL, path string, more ...string) (string, *url.URL, error) {
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
		return b.post(target, fields)
	}
	return "", nil, fmt.Errorf("the page at %s has no form for %s", at.Path, path)
}

// post posts fields with the headers of a form submitted on the same origin.
func (b *Browser) post(target *url.URL, fields url.Values) (string, *url.URL, error) {
	req, err := http.NewRequest(http.MethodPost, target.String(), strings.NewReader(fields.Encode()))
	if err != nil {
		return "", nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", target.Scheme+"://"+target.Host)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	return read(b.client.Do(req))
}

// read returns the body of a response and its URL.
func read(resp *http.Response, err error) (page string, at *url.URL, _ error) {
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), resp.Request.URL, err
}
