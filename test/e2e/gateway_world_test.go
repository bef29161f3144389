//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/service-dev/service/test/browser"
	"github.com/service-dev/service/test/llmtest"
)

// gatewayWorld is a backend with a gateway to a fake provider, and an app that calls it with the official clients.
type gatewayWorld struct {
	t        *testing.T
	backend  *remoteBackend
	provider *llmtest.Provider
	app      *modelApp
}

// ledger is the operator's view of the ledger, in micro-USD.
type ledger struct {
	OK        bool
	Balances  int64 `json:"balancesMicroUsd"`
	Used      int64 `json:"usedMicroUsd"`
	Operator  int64 `json:"operatorMicroUsd"`
	OpenHolds int
}

// startGateway starts a backend whose catalogue contains these models of a fake provider.
func startGateway(t *testing.T, database string, models ...string) *gatewayWorld {
	t.Helper()
	g := &gatewayWorld{t: t, provider: llmtest.Start()}
	t.Cleanup(g.provider.Close)
	catalogue, err := llmtest.WriteCatalogue(t.TempDir(), g.provider.URL, models...)
	if err != nil {
		t.Fatal(err)
	}
	g.backend, g.app = startGatewayOf(t, catalogue, database)
	return g
}

// startGatewayOf starts a backend with a catalogue, and an app with a project key.
func startGatewayOf(t *testing.T, catalogue, database string) (*remoteBackend, *modelApp) {
	t.Helper()
	b := startBackend(t, database, "SERVICE_BACKEND_GATEWAY_CATALOGUE="+catalogue)
	who, err := browser.Link(b.url, "ada@example.org", password)
	if err != nil {
		t.Fatal(err)
	}
	key, err := who.ProjectKey(app)
	if err != nil {
		t.Fatal(err)
	}
	a := startModelApp(t, b.url, key)
	a.owner = who
	return b, a
}

func (b *remoteBackend) ledger() (l ledger) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(b.admin("ledger", "--json")), &l); err != nil {
		b.t.Fatal(err)
	}
	return l
}

func (g *gatewayWorld) ledger() ledger { return g.backend.ledger() }

// settled waits until no credit is held by calls.
func (g *gatewayWorld) settled() (l ledger) {
	g.t.Helper()
	must(g.t, "every call is settled", func() bool { l = g.ledger(); return l.OpenHolds == 0 })
	return l
}

// bill returns the provider's bill for all calls, in micro-USD.
func (g *gatewayWorld) bill() (sum int64) {
	for _, c := range g.provider.Book() {
		sum += c.Bill(llmtest.CataloguePrices)
	}
	return sum
}

// modelApp is an app with the official clients of model providers, in its own process.
type modelApp struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
	// owner is the linked user who owns the app's project.
	owner *browser.Linked
}

// modelReply is what a client returned for one call.
type modelReply struct {
	Text   string         // from the events of a stream
	Last   map[string]any // last event of a stream
	Answer map[string]any
	Error  *modelError
}

// modelError is the error that a client raised.
type modelError struct {
	Name, Code, Type, Message string
	Status                    int
	IsAPIError                bool
}

// startModelApp starts an app that knows only the gateway's address and its own project key. env is added to its
// environment.
func startModelApp(t *testing.T, backendURL, key string, env ...string) *modelApp {
	t.Helper()
	program, err := filepath.Abs(filepath.Join("npm", "models.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nodeTool(t, "node/bin/node"), program)
	cmd.Env = append([]string{"OPENAI_BASE_URL=" + backendURL + "/v1", "OPENAI_API_KEY=" + key,
		"ANTHROPIC_BASE_URL=" + backendURL, "ANTHROPIC_API_KEY=" + key}, env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	return &modelApp{t: t, cmd: cmd, in: in, out: lines}
}

// modelRequest is one call made by a client.
type modelRequest struct {
	API     string         `json:"api"` // chat, responses, messages or models
	Body    map[string]any `json:"body"`
	How     string         `json:"how,omitempty"`     // stream, leave at the first text, or the client's helper
	Options map[string]any `json:"options,omitempty"` // options of the client
}

// do makes one call.
func (a *modelApp) do(r modelRequest) (reply modelReply) {
	a.t.Helper()
	if err := json.NewEncoder(a.in).Encode(r); err != nil {
		a.t.Fatal(err)
	}
	late := time.AfterFunc(2*time.Minute, func() { a.cmd.Process.Kill() })
	defer late.Stop()
	if !a.out.Scan() {
		a.t.Fatalf("the app with the official clients exited: %v", a.out.Err())
	}
	if err := json.Unmarshal(a.out.Bytes(), &reply); err != nil {
		a.t.Fatal(err)
	}
	return reply
}

// ask sends a user's message to a model of the fake provider.
func (a *modelApp) ask(api, model, how string, more map[string]any) modelReply {
	a.t.Helper()
	return a.do(modelRequest{api, askBody(api, model, more), how, map[string]any{"maxRetries": 0, "timeout": 5000}})
}
