package modelapi

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/attest"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/test/enginetest"
	"github.com/service-dev/service/test/testkey"
)

var update = flag.Bool("update", false, "rewrite testdata/authorisation.md")

const authorisationFile = "testdata/authorisation.md"

// requests holds the request bodies of routes, by pattern.
var requests = map[string]string{
	"POST /v1/chat/completions":    `{"model":"good","messages":[{"role":"user","content":"Hello"}]}`,
	"POST /v1/responses":           `{"model":"responses","input":"Hello"}`,
	"POST /v1/messages":            `{"model":"messages","max_tokens":9,"messages":[{"role":"user","content":"Hello"}]}`,
	"PUT /v1/memory":               `{"profile":"Drinks tea."}`,
	attestRoot + "challenge":       `{}`,
	attestRoot + "apple":           `{"challenge":"x","keyId":"eA==","object":"eA=="}`,
	attestRoot + "apple/assertion": `{"challenge":"x","keyId":"eA==","object":"eA=="}`,
	attestRoot + "google":          `{"challenge":"x","install":"an-install-of-an-app","token":"x"}`,
	attestRoot + "development":     `{"challenge":"x","install":"an-install-of-an-app","signature":"eA=="}`,
}

// storedKeys looks up project keys in a database.
type storedKeys struct {
	*projects.Service
	db *db.DB
}

func (k storedKeys) LiveKeys(ctx context.Context, ids []string) ([]string, error) {
	return projects.NewStore(k.db).LiveKeys(ctx, ids)
}

// column is one caller in the table: its name and the header it sends.
type column struct{ name, header, value string }

// callers returns one caller for each kind of credential of this backend, and one without a credential.
func callers(t *testing.T, keys storedKeys, links *link.Service) (columns []column) {
	t.Helper()
	ctx := t.Context()
	tokens := map[string]string{}
	for _, name := range []string{"ada", "bob", "carol"} {
		err := account.NewStore(keys.db).InsertAccount(ctx, account.Account{ID: name, Email: name + "@example.org",
			PasswordHash: "x",
			Active:       true, PrivacyAccepted: time.Now(), CreatedAt: time.Now()})
		key, keyErr := keys.MintKey(ctx, name, "com.example.app", "app", audit.Person())
		if err = errors.Join(err, keyErr); err != nil {
			t.Fatal(err)
		}
		tokens[name] = key.Secret
	}
	revoked, err := keys.MintKey(ctx, "ada", "com.example.app", "old", audit.Person())
	err = errors.Join(err, keys.RevokeKey(ctx, "ada", "com.example.app", revoked.ID, audit.Person()))
	if err != nil {
		t.Fatal(err)
	}
	return []column{
		{"nothing", "Accept", "*/*"}, {"garbage", bearer, "Bearer garbage"}, {"install id", "X-Service-Install-Id", "i-1"},
		{"an agent's token", bearer, "Bearer " + linkOf(t, links, "ada").AuthToken},
		{"a revoked key", bearer, "Bearer " + revoked.Secret},
		{"a suspended account's key", bearer, "Bearer " + tokens["carol"]}, {"ada's key", bearer, "Bearer " + tokens["ada"]},
		{"ada's key as x-api-key", "X-Api-Key", tokens["ada"]}, {"bob's key", bearer, "Bearer " + tokens["bob"]},
	}
}

const bearer = "Authorization"

// linkOf links an agent to an account.
func linkOf(t *testing.T, links *link.Service, account string) *link.Token {
	t.Helper()
	code, err := links.Start(t.Context(), link.Requester{Host: "maple"})
	err = errors.Join(err, links.Approve(t.Context(), code.UserCode, account))
	poll, pollErr := links.Poll(t.Context(), code.DeviceCode)
	if err = errors.Join(err, pollErr); err != nil {
		t.Fatal(err)
	}
	return poll.Token
}

// sessionTokens returns callers with the tokens of simulator sessions.
func sessionTokens(t *testing.T, live *sessions.Assistants, links *link.Service) (columns []column) {
	t.Helper()
	for name, owner := range map[string]string{"token of ada's session": "ada", "token of a closed session": "ada",
		"token of a suspended account's session": "carol", "token of ada's session with a script": "ada"} {
		who := sessions.Owner{AccountID: owner, LinkID: linkOf(t, links, owner).LinkID}
		s, _, err := live.Sessions.Mint(t.Context(), who, sessions.Request{Project: "com.example.app"})
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "script") {
			err = live.SetScript(t.Context(), owner, s.ID, []byte(
				`{"rules":[{"when":{"always":true},"reply":{"text":"Hi"}}]}`))
		}
		access, gatewayErr := live.Gateway(t.Context(), s.ID)
		if err = errors.Join(err, gatewayErr); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "closed session") {
			if _, err := live.Sessions.Close(t.Context(), owner, s.ID); err != nil {
				t.Fatal(err)
			}
		}
		columns = append(columns, column{name, bearer, "Bearer " + access.Token})
	}
	slices.SortFunc(columns, func(a, b column) int { return strings.Compare(a.name, b.name) })
	return columns
}

// installTokens returns callers with the tokens of installs.
func installTokens(t *testing.T, installs *attest.Service, keys storedKeys) (columns []column) {
	t.Helper()
	key := testkey.New(t)
	const project, id = "com.example.app", "an-install-of-an-app"
	_, err := installs.Set(t.Context(), "ada", project, attest.Settings{TestKey: key.Public}, audit.Person())
	for i, name := range []string{"token of ada's install", "token of a revoked install"} {
		minted, keyErr := keys.MintKey(t.Context(), "ada", project, name, audit.Person())
		owner := projects.KeyOwner{AccountID: "ada", Project: project, KeyID: minted.ID}
		c, challengeErr := installs.Challenge(t.Context(), owner)
		install := fmt.Sprintf("%s-%d", id, i)
		token, attestErr := installs.Development(t.Context(), owner, c.Text, install, key.Sign(c.Text, install))
		if err = errors.Join(err, keyErr, challengeErr, attestErr); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			err = installs.Revoke(t.Context(), "ada", project, token.Install, audit.Person())
		}
		columns = append(columns, column{name, bearer, "Bearer " + token.Text})
	}
	if err != nil {
		t.Fatal(err)
	}
	return columns
}

// nobody represents sessions without attached apps and pages.
type nobody struct{ attached }

type attached = sessions.Attached

func (nobody) Closed(string)                                     {}
func (nobody) GatewayChanged(context.Context, string)            {}
func (nobody) GatewaysChanged(context.Context, string)           {}
func (nobody) LogAssistant(context.Context, string, string, any) {}

// TestAuthorisation calls every route as every caller. It compares the status, the error and who pays with the golden
// table.
func TestAuthorisation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "service.db")
	store, err := db.Open(t.Context(), file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	hash := secret.NewHasher([]byte("a key of thirty-two bytes or more"))
	keys := storedKeys{&projects.Service{Store: projects.NewStore(store), Hasher: hash, Now: time.Now}, store}
	links := link.New(link.Options{Store: link.NewStore(store), Hasher: hash, Log: slog.New(slog.DiscardHandler),
		Now: time.Now, Settings: link.Settings{CodeTTL: time.Minute, PollInterval: time.Second, Grace: time.Minute,
			UnusedAfter: time.Minute}})
	columns := callers(t, keys, links)
	service := &sessions.Service{Store: sessions.NewStore(store), Hasher: hash, Live: nobody{}, Now: time.Now}
	live := &sessions.Assistants{Sessions: service, Store: service.Store, Live: nobody{},
		HasModels: func(context.Context, string, string) (bool, error) { return true, nil }}
	columns = append(columns, sessionTokens(t, live, links)...)
	if _, err := enginetest.Connect(t, file).ExecContext(t.Context(),
		"UPDATE accounts SET state = 'suspended' WHERE id = 'carol'"); err != nil {
		t.Fatal(err)
	}
	w := newWorldOf(t, keys, live, 0, gateway.Limits{})
	w.api.Installs = &attest.Service{Store: attest.NewStore(store), Hasher: hash, Now: time.Now}
	columns = append(columns, installTokens(t, w.api.Installs, keys)...)
	w.api.Gateway.Memory = newMemories(t, store, strings.Repeat("01", 32))
	var table strings.Builder
	table.WriteString("# Who may call the interface of models\n\nWritten by `go test ./backend/internal/modelapi -run " +
		"TestAuthorisation -update`. Each cell is the status, the code of a refusal, and who pays.\n\n| route |")
	for _, c := range columns {
		table.WriteString(" " + c.name + " |")
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, rt := range w.api.table() {
		table.WriteString("| " + rt.pattern + " |")
		for _, c := range columns {
			table.WriteString(" " + w.cell(t, rt.pattern, c) + " |")
		}
		table.WriteString("\n")
	}
	if *update {
		if err := os.WriteFile(authorisationFile, []byte(table.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(authorisationFile); err != nil || string(want) != table.String() {
		t.Errorf("the table has changed (error %v); if that is intended, run with -update and review the diff:\n%s", err,
			&table)
	}
}

// cell sends one request and returns the text of its table cell.
func (w *world) cell(t *testing.T, pattern string, c column) string {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	body, ok := requests[pattern]
	if method == http.MethodPost && !ok {
		t.Fatalf("%s: the test has no request body for this route", pattern)
	}
	path = strings.Replace(path, "{id...}", "good", 1)
	if pattern == "GET /v1/realtime" {
		path += "?model=voice"
	}
	r, err := http.NewRequestWithContext(t.Context(), method, w.url+path,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(c.header, c.value)
	if path == "/v1/memory" {
		r.Header.Set(userHeader, strings.Repeat("a", 32))
		r.Header.Set(memoryHeader, agreed)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode == http.StatusNoContent {
		return "204"
	}
	if res.StatusCode == http.StatusUpgradeRequired {
		return "426" // the caller may open a WebSocket
	}
	if res.StatusCode != http.StatusOK {
		var e struct{ Error struct{ Code string } }
		if err := json.Unmarshal(text, &e); err != nil || len(w.purse.rows) > 0 {
			t.Errorf("%s by %s: got error %v, body %s; want a refusal with a code and no charge", pattern, c.name, err, text)
		}
		return fmt.Sprintf("%d %s", res.StatusCode, e.Error.Code)
	}
	if method == http.MethodPost && !strings.HasPrefix(pattern, attestRoot) {
		return "200, " + (<-w.purse.rows).Account + " pays"
	}
	return "200"
}

// Every route is mounted from the route table, so that the test above covers it. Only preflights and the fallback for
// unknown paths are mounted separately.
func TestMount_OnlyTheTable(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var mounted []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "HandleFunc" || s.Sel.Name == "Handle") {
				mounted = append(mounted, file)
			}
			return true
		})
	}
	if !slices.Equal(mounted, []string{"modelapi.go", "modelapi.go", "modelapi.go"}) {
		t.Errorf("routes are mounted in %v, want 3 in modelapi.go: the table, preflights and the fallback", mounted)
	}
}
