package mcpclient

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/test/reaper"
)

// TestMain also makes this test binary act as the server.
func TestMain(m *testing.M) {
	if os.Getenv("MCPCLIENT_TEST_ROLE") == "server" {
		serve()
		os.Exit(0)
	}
	os.Exit(reaper.Run(m.Run))
}

// serve responds to each tool call according to the tool's name.
func serve() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m struct {
			ID     *int
			Params struct {
				Name string
				Meta map[string]any `json:"_meta"`
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		switch m.Params.Name {
		case "fail":
			fmt.Printf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"no","data":{"code":"bad"}}}`+"\n", *m.ID)
		case "end":
			return
		case "hang":
		case "chatter":
			fmt.Printf("noise\n" + `{"jsonrpc":"2.0","id":99,"result":{}}` + "\n" + `{"jsonrpc":"2.0","result":{}}` + "\n")
			fallthrough
		default:
			if m.Params.Meta["progressToken"] != nil {
				fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"message":"half"}}`+
					"\n", *m.ID)
			}
			version, _ := m.Params.Meta["io.modelcontextprotocol/protocolVersion"].(string)
			fmt.Printf(`{"jsonrpc":"2.0","id":%d,"result":{"structuredContent":{"version":%q}}}`+"\n", *m.ID, version)
		}
	}
}

func start(t *testing.T, o Options) *Client {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "MCPCLIENT_TEST_ROLE=server")
	c, err := Start(t.Context(), cmd, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(5 * time.Second) })
	return c
}

func TestClient_CallsOfBothRevisions(t *testing.T) {
	for version, o := range map[string]Options{"": {Name: "test"}, statelessVersion: {Name: "test", Stateless: true}} {
		heard := ""
		r, err := start(t, o).Call(t.Context(), "any", map[string]any{}, func(p Progress) { heard = p.Message })
		if err != nil || !strings.Contains(string(r.Structured), fmt.Sprintf("%q", version)) || heard != "half" {
			t.Errorf("revision %q: got %s, %v, progress %q, want %[1]q and half", version, r.Structured, err, heard)
		}
	}
}

func TestClient_CallFails(t *testing.T) {
	c := start(t, Options{Name: "test"})
	var refused *Error
	if _, err := c.Call(t.Context(), "fail", nil, nil); !errors.As(err, &refused) || refused.Code != -32602 ||
		string(refused.Data) != `{"code":"bad"}` {
		t.Errorf("a failing call: got %v, want the server's error", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Call(ctx, "hang", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a hanging call: got %v, want context.DeadlineExceeded", err)
	}
	if _, err := c.Call(t.Context(), "end", nil, nil); !errors.Is(err, ErrEnded) {
		t.Errorf("a call during which the server exits: got %v, want ErrEnded", err)
	}
}

func TestClient_ReportsUnexpectedLines(t *testing.T) {
	var reasons []string
	c := start(t, Options{Name: "test", Unexpected: func(reason string, _ []byte) { reasons = append(reasons, reason) }})
	if _, err := c.Call(t.Context(), "chatter", nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(reasons, ", "); got != "a line is no message, no call is waiting for this response, an answer has no id" {
		t.Error(got)
	}
}
