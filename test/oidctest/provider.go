// Package oidctest is an OpenID Connect provider for tests, with its own port and RSA key: discovery, JWKS,
// authorisation with PKCE (S256 only) and a token endpoint, with configurable faults. It requires no password: every
// visitor is signed in as the person set by the test. It is independent of the backend. Use it only in tests.
package oidctest

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Client is the only client that the provider knows.
const (
	ClientID     = "service"
	ClientSecret = "canary-client-secret"
)

// Person is the person who signs in.
type Person struct {
	Subject       string
	Email         string
	EmailVerified bool
	// NoClaim omits email_verified. InUserInfo moves the address and the claim to the userinfo endpoint, which
	// describes another person if OtherSubject is set.
	NoClaim, InUserInfo, OtherSubject bool
}

// claims returns the claims about the person's address.
func (who Person) claims() map[string]any {
	claims := map[string]any{"email": who.Email, "email_verified": who.EmailVerified}
	if who.NoClaim {
		delete(claims, "email_verified")
	}
	return claims
}

// Faults make the provider's responses invalid. The zero value changes nothing.
type Faults struct {
	Deny          bool   // the person declines
	TokenStatus   int    // the token endpoint responds with this status
	Nonce         string // replaces the correct nonce
	Audience      string // replaces the client's id
	AlsoAudience  string // an audience in addition to the client's id
	Party         string // the authorized party (azp)
	Issuer        string // replaces the provider's URL
	Expired       bool   // the token expired an hour ago
	Unsigned      bool   // the token has alg none
	ForeignKey    bool   // the token is signed with a key that is not in JWKS
	NoIDToken     bool   // the token response has no id_token
	DiscoveryDown bool   // discovery responds with 503
	SecretInBody  bool   // require the client's secret in the body, as announced in discovery, instead of in the header
}

// Provider is a running provider. Create one with Start.
type Provider struct {
	// Issuer is the provider's URL.
	Issuer string

	server  *http.Server
	done    chan struct{}
	key     *rsa.PrivateKey
	foreign *rsa.PrivateKey

	mu      sync.Mutex
	person  Person
	faults  Faults
	codes   map[string]grant
	counted map[string]int
	asking  bool
	secrets []string
	refused []string
}

// askPage is the consent page. Its parameters are the person's name and the target of the form.
const askPage = `<!doctype html><html lang="en"><title>Test provider</title><h1>Sign in as %s?</h1>
<form method="post" action="%s"><button id="yes" name="say" value="yes">Yes</button><button id="no" name="say" value="no">No</button></form></html>`

type grant struct {
	redirect, challenge, nonce string
	person                     Person
}

// Start serves a provider on 127.0.0.1. Stop it with Close.
func Start() (*Provider, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	p := &Provider{Issuer: "http://" + l.Addr().String(), key: key, foreign: foreign, codes: map[string]grant{},
		counted: map[string]int{}, done: make(chan struct{}),
		person: Person{Subject: "subject-1", Email: "ada@example.org", EmailVerified: true}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /userinfo", p.userInfo)
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(p.done)
		_ = p.server.Serve(l)
	}()
	return p, nil
}

// Close stops the provider and waits for it to end.
func (p *Provider) Close() {
	p.server.Close()
	<-p.done
}

// Be sets the person for subsequent sign-ins.
func (p *Provider) Be(who Person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.person = who
}

// SetFaults sets the faults of subsequent responses.
func (p *Provider) SetFaults(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
}

// Calls returns the number of requests for a path.
func (p *Provider) Calls(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counted[path]
}

// Ask makes the provider show a page where the person consents or declines. By default, every person consents without
// a page.
func (p *Provider) Ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = true
}

// Secrets returns all states, nonces, codes, verifiers and tokens that the provider issued or received.
func (p *Provider) Secrets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.secrets)
}

// Refusals returns the reason for each refused call to the token endpoint: client, code, redirect_uri or
// code_verifier.
func (p *Provider) Refusals() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

func (p *Provider) keep(secrets ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range secrets {
		if s != "" {
			p.secrets = append(p.secrets, s)
		}
	}
}

func (p *Provider) now(r *http.Request) (Faults, Person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counted[r.URL.Path]++
	return p.faults, p.person
}

func (p *Provider) discovery(w http.ResponseWriter, r *http.Request) {
	f, _ := p.now(r)
	if f.DiscoveryDown {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	methods := []string{"client_secret_basic"}
	if f.SecretInBody {
		methods = []string{"client_secret_post"}
	}
	answer(w, map[string]any{
		"issuer": p.Issuer, "authorization_endpoint": p.Issuer + "/authorize", "token_endpoint": p.Issuer + "/token",
		"jwks_uri": p.Issuer + "/keys", "userinfo_endpoint": p.Issuer + "/userinfo",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": methods,
	})
}

func (p *Provider) userInfo(w http.ResponseWriter, r *http.Request) {
	_, who := p.now(r)
	claims := map[string]any{"sub": who.Subject}
	if who.InUserInfo {
		maps.Copy(claims, who.claims())
	}
	if who.OtherSubject {
		claims["sub"] = "another"
	}
	answer(w, claims)
}

func (p *Provider) keys(w http.ResponseWriter, r *http.Request) {
	p.now(r)
	answer(w, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "one",
		"n": encode(p.key.N.Bytes()), "e": encode(big.NewInt(int64(p.key.E)).Bytes())}}})
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	f, person := p.now(r)
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("client_id") != ClientID || q.Get("response_type") != "code" ||
		q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	asking := p.asking && r.FormValue("say") == ""
	p.mu.Unlock()
	if asking {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, askPage, html.EscapeString(person.Email), html.EscapeString("/authorize?"+r.URL.RawQuery))
		return
	}
	p.keep(q.Get("state"), q.Get("nonce"))
	result := url.Values{"state": {q.Get("state")}}
	if f.Deny || r.FormValue("say") == "no" {
		result.Set("error", "access_denied")
	} else {
		code := rand.Text()
		p.mu.Lock()
		p.codes[code] = grant{redirect: back.String(), challenge: q.Get("code_challenge"), nonce: q.Get("nonce"),
			person: person}
		p.mu.Unlock()
		p.keep(code)
		result.Set("code", code)
	}
	back.RawQuery = result.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	f, _ := p.now(r)
	if f.TokenStatus != 0 {
		http.Error(w, `{"error":"server_error"}`, f.TokenStatus)
		return
	}
	id, secret, _ := r.BasicAuth()
	if f.SecretInBody {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	p.mu.Lock()
	g, known := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	p.mu.Unlock()
	p.keep(r.PostFormValue("code_verifier"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	wrong := ""
	switch {
	case id != ClientID || secret != ClientSecret:
		wrong = "client"
	case !known:
		wrong = "code"
	case g.redirect != r.PostFormValue("redirect_uri"):
		wrong = "redirect_uri"
	case g.challenge != encode(sum[:]):
		wrong = "code_verifier"
	}
	if wrong != "" {
		p.mu.Lock()
		p.refused = append(p.refused, wrong)
		p.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		code := "invalid_grant"
		if wrong == "client" {
			code = "invalid_client"
		}
		fmt.Fprintf(w, `{"error":%q}`, code)
		return
	}
	body := map[string]any{"access_token": "canary-access-token", "token_type": "Bearer", "expires_in": 60}
	p.keep("canary-access-token")
	if !f.NoIDToken {
		token := p.sign(g, f)
		p.keep(token)
		body["id_token"] = token
	}
	answer(w, body)
}

func (p *Provider) sign(g grant, f Faults) string {
	now := time.Now()
	if f.Expired {
		now = now.Add(-time.Hour)
	}
	claims := map[string]any{"iss": or(f.Issuer, p.Issuer), "aud": or(f.Audience, ClientID), "sub": g.person.Subject,
		"nonce": or(f.Nonce, g.nonce), "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
	if f.AlsoAudience != "" {
		claims["aud"] = []string{ClientID, f.AlsoAudience}
	}
	if f.Party != "" {
		claims["azp"] = f.Party
	}
	if !g.person.InUserInfo {
		maps.Copy(claims, g.person.claims())
	}
	head := map[string]string{"alg": "RS256", "kid": "one", "typ": "JWT"}
	if f.Unsigned {
		head["alg"] = "none"
	}
	text := encode(marshal(head)) + "." + encode(marshal(claims))
	if f.Unsigned {
		return text + "."
	}
	key := p.key
	if f.ForeignKey {
		key = p.foreign
	}
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err) // a 2048-bit key can always sign a hash
	}
	return text + "." + encode(signature)
}

func or(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers can always be encoded
	}
	return b
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(marshal(v))
}
