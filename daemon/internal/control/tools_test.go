package control

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	api "github.com/service-dev/service/proto/control"
	"github.com/service-dev/service/test/controltest"
)

func TestCallTool(t *testing.T) {
	client := dial(t, &fake{})
	if r, err := controltest.Tool(t.Context(), client, "x", ""); err != nil || string(r.Structured) != "{}" || r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err := controltest.Tool(t.Context(), client, "bad", `{"a": 1}`); err != nil || !r.IsError ||
		string(r.Structured) != `{"a":1}` {
		t.Fatalf("%+v, %v", r, err)
	}
	_, err := controltest.Tool(t.Context(), client, "panic", "")
	if e := refusalOf(t, err); e.Code != "internal" || strings.Contains(e.Message, "sdc_secret") {
		t.Fatalf("%v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	lines, err := controltest.Stream(ctx, client, api.CallTool, api.ToolRequest{Name: "wait"})
	if err != nil {
		t.Fatal(err)
	}
	if line, err := lines.Next(); err != nil || line.Progress == nil || line.Progress.Message != "half" {
		t.Fatalf("%+v, %v", line, err)
	}
	// The call must end with its caller; the cleanup checks that.
	cancel()
}

// A call that fails after its first line ends with the error.
func TestErrorIsTheLastLine(t *testing.T) {
	lines, err := controltest.Stream(t.Context(), dial(t, &fake{}), api.CallTool, api.ToolRequest{Name: "half"})
	if err != nil {
		t.Fatal(err)
	}
	if line, err := lines.Next(); err != nil || line.Progress == nil {
		t.Fatalf("%+v, %v", line, err)
	}
	_, err = lines.Next()
	if e := refusalOf(t, err); e.Code != "internal" {
		t.Errorf("got %v, want the error of the call", e)
	}
	if _, err := lines.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the error: %v, want the end", err)
	}
}

// A session that a client's stream created ends with the stream: when the client cancels it, when its connection
// breaks, and when the daemon stops. An existing session stays open.
func TestSessionEndsWithItsStream(t *testing.T) {
	opened := func(t *testing.T, client *controltest.Client, status string) (context.CancelFunc,
		*controltest.Lines[api.ToolEvent]) {
		ctx, cancel := context.WithCancel(t.Context())
		lines, err := controltest.Stream(ctx, client, api.OpenSession,
			api.SessionRequest{Arguments: []byte(`{"status":"` + status + `"}`)})
		if err != nil {
			t.Fatal(err)
		}
		if line, err := lines.Next(); err != nil || !strings.Contains(string(line.Result.Structured), "loc_1") {
			t.Fatalf("%+v, %v", line, err)
		}
		return cancel, lines
	}
	f := &fake{closed: make(chan string, 1)}
	path, _ := serve(t, f, Limits{})

	letGo, _ := opened(t, controltest.New(t, path), "active")
	letGo()
	if id := <-f.closed; id != "loc_1" {
		t.Errorf("closed %s", id)
	}

	letGo, lines := opened(t, controltest.New(t, path), "error")
	defer letGo()
	if _, err := lines.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("no session was created: %v, want EOF", err)
	}

	letGo, _ = opened(t, controltest.New(t, path), "resumed")
	letGo()
	// The daemon stops at the end of this subtest, before the client.
	t.Run("daemon", func(daemon *testing.T) {
		path, _ := serve(daemon, f, Limits{})
		letGo, _ := opened(t, controltest.New(t, path), "active")
		t.Cleanup(letGo)
	})
	if len(f.closed) != 1 {
		t.Errorf("%d sessions were closed when the daemon stopped, want only the created one", len(f.closed))
	}
}
