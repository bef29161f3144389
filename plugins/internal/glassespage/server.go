package glassespage

import (
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"strings"

	"github.com/service-dev/service/glasses/driver/panelcheck"
	"github.com/service-dev/service/glasses/driver/webbluetooth"
)

//go:embed assets
var assets embed.FS

// headers are set on every response. The policy allows only this server's own files.
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

// newSecret returns a random text that cannot be guessed.
func newSecret() string { return rand.Text() }

func (p *Page) routes() http.Handler {
	mux := http.NewServeMux()
	for path, file := range map[string]string{"/{$}": "page.html", "/page.css": "page.css", "/page.js": "page.js"} {
		data, err := fs.ReadFile(assets, "assets/"+file)
		if err != nil {
			panic(err) // the file is embedded
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
		_, _ = w.Write(data) // the browser may have disconnected
	})
}

// guard refuses requests from other sites, and requests for another host name, because an attacker's DNS may resolve
// that name to this machine. It accepts requests from the page itself and from a user who opens it.
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

// admission is the body of a request to admit a browser, and of the response. The request contains the token from the
// address, or a secret that the browser received for an earlier token.
type admission struct {
	Token  string `json:"token,omitempty"`
	Secret string `json:"secret"`
}

// admit exchanges the token in the address for a secret. Once the page is open, the token is no longer valid, and the
// next browser needs a new one. An admitted browser may reload the page. The secret is not a cookie, because browsers
// send cookies to every port of this machine; the page stores it for its own origin instead.
func (p *Page) admit(w http.ResponseWriter, r *http.Request) {
	var body admission
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1024)).Decode(&body)
	p.mu.Lock()
	isKnown := err == nil && p.knows(body.Secret)
	isNew := !isKnown && err == nil && isEqual(body.Token, p.token)
	if isNew {
		p.secret = newSecret()
	}
	answer := admission{Secret: p.secret}
	p.mu.Unlock()
	if !isKnown && !isNew {
		http.Error(w, "the address is wrong or was already used", http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the browser may have disconnected
}

// knows reports whether secret belongs to the browser that was admitted last. mu must be held.
func (p *Page) knows(secret string) bool { return p.secret != "" && isEqual(secret, p.secret) }

// subprotocol is the WebSocket protocol of the page. The page offers its secret as a second protocol, because a page
// can set no other header of a browser's WebSocket.
const subprotocol = "glasses"

// admitted refuses all browsers except the one that was admitted last.
func (p *Page) admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, secret, _ := strings.Cut(r.Header.Get("Sec-WebSocket-Protocol"), ",")
		p.mu.Lock()
		isKnown := strings.TrimSpace(name) == subprotocol && p.knows(strings.TrimSpace(secret))
		p.mu.Unlock()
		if isKnown {
			next.ServeHTTP(w, r)
		} else {
			http.Error(w, "open the page's address again", http.StatusUnauthorized)
		}
	})
}

func isEqual(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
