//go:build unix

package e2e

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client that sends an unreadable message gets one error response. Its other calls are not affected.
func TestUnreadableMessages_CostOneAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	huge := map[string]any{"query": strings.Repeat("x", 5<<20)}
	t.Run("go", func(t *testing.T) { goClientSurvives(t, w, huge) })
	for _, protocol := range []string{"legacy", "modern"} {
		t.Run("typescript "+protocol, func(t *testing.T) {
			here := w.with()
			here.t = t
			a := startAgent(here, protocol, false)
			_, refused := a.start("searchDocs", huge, false, 10*time.Second)
			select {
			case line := <-refused:
				if line.Error == nil || fmt.Sprint(line.Error.Code) != "-32600" {
					t.Errorf("a call of 5 MB: got %+v, want error -32600", line)
				}
			case <-time.After(20 * time.Second):
				t.Error("a call of 5 MB got no response within 20 s")
			}
			if r := a.call("whoAmI", map[string]any{}); r.IsError {
				t.Errorf("the next call failed: %v", r.Structured)
			}
		})
	}
}

// goClientSurvives drives the official Go client and injects lines into its stream that no client would send.
func goClientSurvives(t *testing.T, w *world, huge map[string]any) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	shim := w.command("service-mcp")
	in, err := shim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := shim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = shim.Wait() }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).
		Connect(ctx, &mcp.IOTransport{Reader: out, Writer: in, MaxLineLength: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	alive := func(after string) {
		t.Helper()
		if r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "whoAmI"}); err != nil || r.IsError {
			t.Fatalf("the call after the line %.80s: got error %v, want success", after, err)
		}
	}
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "searchDocs", Arguments: huge}); err == nil ||
		ctx.Err() != nil {
		t.Errorf("a call of 5 MB: got %v, want an error", err)
	}
	alive("a call of 5 MB")
	deep := strings.Repeat("[", 10001) + strings.Repeat("]", 10001)
	for _, line := range []string{
		"hello", "[]", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, strings.Repeat("x", 5<<20),
		`{"jsonrpc":"2.0","id":1000.0,"method":"ping"}`, `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`, `{"jsonrpc":"1.0","id":1000,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1000,"method":"ping","params":` + deep + "}",
	} {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		alive(line)
	}
}
