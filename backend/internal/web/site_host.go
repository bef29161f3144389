package web

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/passkey"
)

// The pages of an embedded backend have a host name below localhost. Browsers send a host's cookies to every port of
// the host, so every other server at localhost would receive them. A browser that opens a page at localhost is
// redirected to the host name only after it has proved that it can resolve the name.

const (
	probePath  = "/site-host/"
	stayPath   = "/stay"
	staySuffix = "-stay" // suffix of the cookie for a browser that does not resolve the name
	stayLife   = 7 * 24 * time.Hour
	maxProbe   = 64 // bytes
)

// movePage is the data of the template "move", which sends the browser to the site's host.
type movePage struct {
	URL, Stay       string // the same page there and here
	Probe, Expected string // a URL that responds with Expected if the browser resolves the name
}

// mountSiteHost adds the routes with which browsers find the site's host name.
func (w *Web) mountSiteHost(mux *http.ServeMux) {
	if !w.Embedded || w.siteHost == "" {
		return
	}
	mux.HandleFunc("GET /site-host/{challenge}", w.probeSiteHost)
	mux.HandleFunc("GET /stay", func(rw http.ResponseWriter, r *http.Request) {
		setHeaders(rw.Header())
		c := &call{Request: r, rw: rw}
		if r.Header.Get("Sec-Fetch-Site") != "cross-site" { // other sites must not keep browsers here
			w.setCookie(c, staySuffix, "1", stayLife)
		}
		_ = c.redirect(sitePath(r.URL.Query().Get("next"))) // never fails
	})
}

// isSiteHost reports whether the browser opened the page at the site's own host name.
func (w *Web) isSiteHost(c *call) bool {
	return !w.Embedded || w.siteHost == "" || c.Host == w.siteHost
}

// worksHere reports whether a passkey works at the site's host. In an embedded backend, a passkey without a stored
// host was added at localhost.
func (w *Web) worksHere(k passkey.Passkey) bool {
	host := k.Host
	if host == "" && w.Embedded {
		host = "localhost"
	}
	return host == "" || w.siteHost == "" || host == (&url.URL{Host: w.siteHost}).Hostname()
}

// lostPasskeys reports whether the account has passkeys, but none that works at the site's host.
func (w *Web) lostPasskeys(c *call, accountID string) (bool, error) {
	if w.Passkeys == nil || !w.Embedded || !w.isSiteHost(c) {
		return false, nil
	}
	keys, err := w.Passkeys.List(c.Context(), accountID)
	return len(keys) > 0 && !slices.ContainsFunc(keys, w.worksHere), err
}

// mustMove reports whether the page was opened at a host other than the site's, in a browser that may resolve the
// site's host. It returns false for a browser that sends no Fetch Metadata.
func (w *Web) mustMove(c *call) bool {
	return !w.isSiteHost(c) && c.Method == http.MethodGet && c.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		c.Header.Get("Sec-Fetch-Dest") == "document" && w.cookieValue(c, staySuffix, 1) == ""
}

func (w *Web) showMove(c *call) error {
	challenge, site := rand.Text(), "http://"+w.siteHost
	c.rw.Header().Set("Content-Security-Policy",
		strings.Replace(contentPolicy, "connect-src 'self'", "connect-src "+site, 1))
	return w.render(c, http.StatusOK, "move", movePage{
		URL: site + c.URL.RequestURI(), Stay: stayPath + "?next=" + url.QueryEscape(c.URL.RequestURI()),
		Probe: site + probePath + challenge, Expected: w.sign("site host", challenge),
	})
}

// probeSiteHost proves to a page of this backend at localhost that the site's host name leads to this backend. The
// name could lead to another server if the browser resolved it with a DNS server.
func (w *Web) probeSiteHost(rw http.ResponseWriter, r *http.Request) {
	setHeaders(rw.Header())
	challenge := r.PathValue("challenge")
	if len(challenge) > maxProbe || r.Host != w.siteHost {
		http.NotFound(rw, r)
		return
	}
	port := w.siteHost[strings.LastIndexByte(w.siteHost, ':'):]
	own := func(host string) bool { return r.Header.Get("Origin") == "http://"+host+port }
	if slices.ContainsFunc([]string{"localhost", "127.0.0.1", "[::1]"}, own) {
		rw.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	}
	rw.Header().Set("Vary", "Origin")
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = rw.Write([]byte(w.sign("site host", challenge))) // the browser may have disconnected
}
