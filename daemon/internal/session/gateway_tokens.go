package session

import (
	"maps"
	"sync"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/credential"
)

// gatewayTokens holds the tokens with which apps of local sessions call their assistants. The tokens exist only in
// memory. An app that attaches again receives a new one.
type gatewayTokens struct {
	mu     sync.Mutex // innermost lock: do not acquire another lock while holding it
	byHash map[string]gatewayToken
}

type gatewayToken struct {
	app  *App
	ends time.Time
}

// maxGatewayTokens is the number of tokens above which expired ones are removed.
const maxGatewayTokens = 10_000

// mint returns a new token for an app.
func (t *gatewayTokens) mint(a *App, now time.Time) string {
	token := newSecret(credential.Gateway)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byHash == nil {
		t.byHash = map[string]gatewayToken{}
	}
	if len(t.byHash) >= maxGatewayTokens {
		maps.DeleteFunc(t.byHash, func(_ string, g gatewayToken) bool { return !now.Before(g.ends) })
	}
	t.byHash[hashSecret(token)] = gatewayToken{app: a, ends: now.Add(glasses.GatewayTokenLife)}
	return token
}

// find returns the app to which a token belongs.
func (t *gatewayTokens) find(token string, now time.Time) (*App, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g, ok := t.byHash[hashSecret(token)]
	return g.app, ok && now.Before(g.ends)
}

// end invalidates the tokens of a session.
func (t *gatewayTokens) end(s *localSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.byHash, func(_ string, g gatewayToken) bool { return g.app.session == s })
}
