//go:build unix

package e2e

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/test/llmtest"
	"github.com/service-dev/service/test/pgtest"
)

// misbehaving lists models whose provider includes keys in its responses, fails, or ends responses early.
var misbehaving = []string{llmtest.Good, llmtest.EchoesKey, llmtest.Status400EchoKey, llmtest.Status401,
	llmtest.Status429Spent, llmtest.Status500, llmtest.ErrorFrame, llmtest.ErrorInside, llmtest.HTML502, llmtest.HTML200,
	llmtest.CutBeforeUsage, llmtest.DropsAfterRead, llmtest.UsageStrings}

// measureTool is the part of a request body that offers the script's tool.
const measureTool = `,"tools":[{"type":"function","function":{"name":"measure","parameters":{"type":"object"}}}]`

// gatewayOfSecrets starts a fake provider and returns a catalogue of its misbehaving models. Projects can also pay for
// these with their own keys.
func gatewayOfSecrets(t *testing.T) (catalogue string) {
	t.Helper()
	provider := llmtest.Start()
	t.Cleanup(provider.Close)
	return withOwnKeys(t, provider.URL, misbehaving...)
}

// withOwnKeys writes a catalogue that lets projects use their own keys for the provider.
func withOwnKeys(t *testing.T, providerURL string, models ...string) (catalogue string) {
	t.Helper()
	catalogue, err := llmtest.WriteCatalogue(t.TempDir(), providerURL, models...)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("{id: fake,", "{id: fake, own_keys: openai,", "models:\n", "models:\n  - {id: unpriced, "+
		"provider: fake, api: chat, context_tokens: 1000, output_tokens: 100}\n").Replace(readAll(t, catalogue))
	writeInto(t, catalogue, text)
	return catalogue
}

// gatewayDay calls models through every interface with the project's key, paid by credit and by the project's own key,
// and also the models of a local session. It adds the prompts and the session's token to secrets, and returns what the
// apps received.
func gatewayDay(t *testing.T, b *remoteBackend, a *agent, someone *person, secrets map[string]string) (answers string) {
	t.Helper()
	secrets["prompt"] = "canary prompt: how deep is the lake"
	var all strings.Builder
	ask := func(address, key, model, more string) {
		status, text := callModel(t, address, key, model, secrets["prompt"], more)
		fmt.Fprintf(&all, "%d %s\n", status, text)
	}
	const chat, messages = "/v1/chat/completions", "/v1/messages"
	sweep := func() {
		for _, model := range misbehaving {
			for _, more := range []string{"", `,"stream":true`} {
				ask(b.url+chat, secrets["project key"], model, more)
				ask(b.url+messages, secrets["project key"], "msg-"+model, more)
			}
		}
		ask(b.url+chat, secrets["project key"]+"x", llmtest.Good, "")
		ask(b.url+chat, secrets["project key"], llmtest.Good, `,"n":3`)
		ask(b.url+chat, secrets["project key"], llmtest.Good, `,"tools":"none"}{`)
	}
	sweep()
	someone.open(b.url + "/account/projects/" + app + "/gateway")
	someone.submit("/account/projects/"+app+"/gateway/key-source", "source", "own")
	sweep()
	for _, code := range []string{`"content":"Gr`, "provider_busy", "own_key_refused", "the answer broke off",
		"invalid_key", "unsupported_parameter", "invalid_json", "[removed]"} {
		if !strings.Contains(all.String(), code) {
			t.Errorf("no call failed with code %q", code)
		}
	}

	script := filepath.Join(t.TempDir(), "assistant.json")
	writeInto(t, script, `{"rules":[{"when":{"contains":"lake"},"reply":{"toolCall":{"name":"measure","arguments":{}}}}]}`)
	session := a.call("startLocalSimulation", map[string]any{"project": app, "fresh": true, "assistantScript": script})
	welcome, _, ok := attach(t, session.str(t, "appEndpoint"), strings.TrimSpace(readAll(t, session.str(t,
		"appTokenFile")))).find(0, 10*time.Second, func(f appFrame) bool { return f.Type == glasses.TypeWelcome })
	var of glasses.Welcome
	if err := json.Unmarshal(welcome.Payload, &of); !ok || err != nil || of.Gateway == nil {
		t.Fatalf("no gateway in the welcome %s: %v", welcome.Payload, err)
	}
	secrets["session's gateway token"] = of.Gateway.Token
	ask(of.Gateway.URL+"/chat/completions", of.Gateway.Token, "assistant", measureTool)
	ask(of.Gateway.URL+"/chat/completions", of.Gateway.Token, "assistant", `,"n":3`)
	ask(of.Gateway.URL+"/chat/completions", of.Gateway.Token+"x", "assistant", "")
	called := a.call("waitForEvent", map[string]any{"sessionId": session.str(t, "sessionId"),
		"type": "assistant.tool_called", "timeoutSeconds": 20})
	if called.Structured["status"] != "found" {
		t.Errorf("wait for a tool call: got %v, want status found", called.Structured)
	}
	return all.String()
}

// callModel makes one model call as an app; the extra fields of the body follow the messages.
func callModel(t *testing.T, address, key, model, prompt, more string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, address, strings.NewReader(fmt.Sprintf(
		`{"model":%q,"max_tokens":100,"messages":[{"role":"user","content":%q}]%s}`, model, prompt, more)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		body = append(body, "\nBROKEN"...)
	}
	return resp.StatusCode, string(body)
}

// newRawDatabase creates an empty database of an engine. dump returns its content, and bytes returns the raw files on
// disk, including the write-ahead log.
func newRawDatabase(t *testing.T, engine string) (database string, dump, bytes func() string) {
	t.Helper()
	if engine != "postgres" {
		database, dump = newDatabase(t, engine)
		return database, dump, func() string { return readAll(t, database) + readAll(t, database+"-wal") }
	}
	c := orMissing(t, pgtest.Start)
	t.Cleanup(c.Stop)
	database = c.Database(t)
	return database, func() string { return c.Dump(t, database) }, func() string {
		db, err := sql.Open("pgx", database)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec("CHECKPOINT"); err != nil { // writes data that is only in memory to disk
			t.Fatal(err)
		}
		c.Halt(t) // so that no file changes while it is read
		defer c.Resume(t)
		return filesBelow(t, c.Files())
	}
}
