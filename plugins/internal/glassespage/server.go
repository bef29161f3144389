package glassespage

import (
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"strings"

	"github.com/service-dev/service/proto/glasses/driver/panelcheck"
	"github.com/service-dev/service/proto/glasses/driver/webbluetooth"
)

//go:embed assets
var assets embed.FS

// headers are those of every answer. The policy admits only this server's own files.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	"Permissions-Policy":           "bluetooth=(self)",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-store",
}

// newSecret returns a text that nobody can guess.
func newSecret() string { return rand.Text() }

func (p *Page) routes() http.Handler {
	mux := http.NewServeMux()
	for path, file := range map[string]string{"/{$}": "page.html", "/page.css": "page.css", "/page.js": "page.js"} {
		data, err := fs.ReadFile(assets, "assets/"+file)
		if err != nil {
			panic(err) // it is embedded
		}
		mux.Handle("GET "+path, serveFile(file, data))
	}
	mux.Handle("GET /bluetooth.js", serveFile("bluetooth.js", webbluetooth.Script))
	mux.Handle("GET /panelcheck.js", serveFile("panelcheck.js", panelcheck.Script))
	mux.HandleFunc("POST /admit", p.admit)
	mux.Handle("GET /links", p.admitted(http.HandlerFunc(p.serveLinks)))
	return mux
}

func serveFile(name string, data []byte) http.Handler {
	kinds := map[string]string{"html": "text/html", "css": "text/css", "js": "text/javascript"}
	_, ext, _ := strings.Cut(name, ".")
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kinds[ext]+"; charset=utf-8")
		_, _ = w.Write(data) // the browser may have gone
	})
}

// guard refuses requests that do not come from the page itself or from a person who opens it: those of other sites, and
// those for another host, whose name an attacker's DNS may point here.
func (p *Page) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		origin, fromPage := r.Header.Get("Origin"), "http://"+p.address
		isOpen := r.Method == http.MethodGet && r.URL.Path != "/links"
		switch {
		case r.Host != p.address:
			http.Error(w, "unknown host", http.StatusMisdirectedRequest)
		case origin != fromPage && (origin != "" || !isOpen):
			http.Error(w, "this request does not come from the page", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (p *Page) cookieName() string {
	return "glasses-" + p.address[strings.LastIndexByte(p.address, ':')+1:] // cookies are for all ports
}

// admit exchanges the token of the address for a cookie, until the page is open: the next browser needs the next token.
// A browser that was admitted may reload the page.
func (p *Page) admit(w http.ResponseWriter, r *http.Request) {
	var body struct{ Token string }
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1024)).Decode(&body)
	p.mu.Lock()
	isKnown := p.knows(r)
	isNew := !isKnown && err == nil && isEqual(body.Token, p.token)
	if isNew {
		p.cookie = newSecret()
	}
	cookie := p.cookie
	p.mu.Unlock()
	switch {
	case isNew:
		http.SetCookie(w, &http.Cookie{Name: p.cookieName(), Value: cookie, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteStrictMode})
	case !isKnown:
		http.Error(w, "the address was used before or is wrong", http.StatusForbidden)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// knows reports whether a request comes from the browser that was admitted last. mu must be held.
func (p *Page) knows(r *http.Request) bool {
	cookie, err := r.Cookie(p.cookieName())
	return err == nil && p.cookie != "" && isEqual(cookie.Value, p.cookie)
}

// admitted lets only the browser in that was admitted last.
func (p *Page) admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		isKnown := p.knows(r)
		p.mu.Unlock()
		if isKnown {
			next.ServeHTTP(w, r)
		} else {
			http.Error(w, "open the page's address again", http.StatusUnauthorized)
		}
	})
}

func isEqual(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
