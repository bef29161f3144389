//go:build release

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/test/browser"
	"github.com/service-dev/service/test/enginetest"
	"github.com/service-dev/service/test/llmtest"
	"github.com/service-dev/service/test/testkey"
)

// user is the secret of a user of the app.
const user = "abababababababababababababababab"

// oldBackend names the variable with the path of the service-backend of an earlier version.
const oldBackend = "SERVICE_E2E_OLD_BACKEND"

// The server is upgraded and downgraded with its database. No row is lost, what the newer version stored survives the
// older one, and both serve the same project and count the same credit.
func TestBackend_UpgradesAndDowngrades(t *testing.T) {
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			database, _ := newDatabase(t, engine)
			u := startOldBackend(t, database)
			u.use(t, "the old server")
			u.b.stop()
			before := enginetest.ReadContent(t, database)
			for _, table := range []string{"accounts", "links", "projects", "project_keys", "sessions", "credit_transfers",
				"gateway_usage", "audit"} {
				if len(before[table].Rows) == 0 {
					t.Errorf("the old server stored no row in %s", table)
				}
			}

			u.b.program = filepath.Join(bin, "service-backend")
			u.b.start()
			for table, change := range before.Changes(t, database) {
				t.Errorf("the upgrade changed %s: %s", table, change)
			}
			u.use(t, "the new server")
			u.remember(t)
			u.attest(t)
			u.b.stop()
			after := enginetest.ReadContent(t, database)

			u.b.program = os.Getenv(oldBackend)
			u.b.start()
			for table, change := range after.Changes(t, database) {
				t.Errorf("the downgrade changed %s: %s", table, change)
			}
			u.use(t, "the old server again")
			u.b.stop()

			u.b.program = filepath.Join(bin, "service-backend")
			u.b.start()
			u.use(t, "the new server again")
			if got := u.model(t, http.MethodGet, "/v1/memory", u.key, nil, "X-Service-User", user)["profile"]; got != u.profile {
				t.Errorf("the profile is %v, want what was remembered before the downgrade, %q", got, u.profile)
			}
		})
	}
}

// usedBackend is a server that two versions run in turn, and a user with a project and its key.
type usedBackend struct {
	b        *remoteBackend
	owner    *browser.Linked
	key      string
	provider *llmtest.Provider
	sessions int
	profile  string // what is remembered about a user of the app
}

func startOldBackend(t *testing.T, database string) *usedBackend {
	t.Helper()
	u := &usedBackend{provider: llmtest.Start()}
	t.Cleanup(u.provider.Close)
	catalogue, err := llmtest.WriteCatalogue(t.TempDir(), u.provider.URL, llmtest.Good)
	if err != nil {
		t.Fatal(err)
	}
	u.b = startProgram(t, os.Getenv(oldBackend), database, "SERVICE_BACKEND_GATEWAY_CATALOGUE="+catalogue)
	if u.owner, err = browser.Link(u.b.url, "ada@example.org", password); err == nil {
		u.key, err = u.owner.ProjectKey(app)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// use uses what both versions have: sessions, model calls, usage reports, credit and pages.
func (u *usedBackend) use(t *testing.T, server string) {
	t.Helper()
	var session struct{ SessionID string }
	u.sessions++
	err := u.owner.Post("/api/sessions", map[string]any{"project": app, "fresh": true}, &session)
	u.model(t, http.MethodPost, "/v1/chat/completions", u.key, nil)
	var list struct{ Sessions []any }
	var usage struct{ Totals struct{ Calls int } }
	err = errors.Join(err, u.owner.Get("/api/sessions", &list),
		u.owner.Get("/api/projects/"+app+"/gateway/usage?range=24h", &usage))
	if err != nil || len(list.Sessions) != u.sessions || usage.Totals.Calls != len(u.provider.Book()) {
		t.Errorf("with %s: %d sessions and %d calls (error %v), want %d and %d", server, len(list.Sessions),
			usage.Totals.Calls, err, u.sessions, len(u.provider.Book()))
	}
	var billed int64
	for _, c := range u.provider.Book() {
		billed += c.Bill(llmtest.CataloguePrices)
	}
	if l := u.b.ledger(); !l.OK || l.Used != billed {
		t.Errorf("with %s: the ledger is %+v, want it right, with %d used", server, l, billed)
	}
	for _, page := range []string{"gateway", "assistant", "activity"} {
		u.page(t, page)
	}
}

// page opens a page of the project.
func (u *usedBackend) page(t *testing.T, name string) (html string, at *url.URL) {
	t.Helper()
	html, at, err := u.owner.Browser.Get(u.b.url + "/account/projects/" + app + "/" + name)
	if err != nil || !strings.HasSuffix(at.Path, "/"+name) {
		t.Fatalf("page %s: got %s, %v", name, at, err)
	}
	return html, at
}

// model calls a path of the gateway. Without a body, it asks the model that every project can use.
func (u *usedBackend) model(t *testing.T, method, path, key string, body map[string]any,
	header ...string,
) (answer map[string]any) {
	t.Helper()
	if body == nil {
		body = map[string]any{"model": llmtest.Good, "messages": []any{map[string]any{"role": "user", "content": "Hello"}}}
	}
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, u.b.url+path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode < 300 {
		err = json.Unmarshal(data, &answer)
	}
	if err != nil || answer == nil {
		t.Fatalf("%s %s: status %d: %s (error %v)", method, path, resp.StatusCode, data, err)
	}
	return answer
}

// remember has a conversation that is remembered: when the server ends, what the model answers becomes the profile.
func (u *usedBackend) remember(t *testing.T) {
	t.Helper()
	data, err := json.Marshal(u.model(t, http.MethodPost, "/v1/chat/completions", u.key, nil,
		"X-Service-User", user, "X-Service-Memory", "wearer-agreed"))
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := errors.Join(err, json.Unmarshal(data, &answer)); err != nil || len(answer.Choices) == 0 {
		t.Fatalf("got %s, %v", data, err)
	}
	u.profile = answer.Choices[0].Message.Content
}

// attest makes calls as an attested install, in a project whose keys alone have no allowance left.
func (u *usedBackend) attest(t *testing.T) {
	t.Helper()
	key := testkey.New(t)
	html, at := u.page(t, "gateway")
	_, _, err := u.owner.Browser.Submit(html, at, at.Path+"/attestation", "test-key", key.Public)
	if err != nil {
		t.Fatal(err)
	}
	challenge := fmt.Sprint(u.model(t, http.MethodPost, "/v1/attest/challenge", u.key, map[string]any{})["challenge"])
	install := strings.Repeat("i", 20)
	token := u.model(t, http.MethodPost, "/v1/attest/development", u.key, map[string]any{"challenge": challenge,
		"install": install, "signature": base64.StdEncoding.EncodeToString(key.Sign(challenge, install))})["token"]
	u.model(t, http.MethodPost, "/v1/chat/completions", fmt.Sprint(token), nil)
}
