//go:build unix

package app

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// In an agent's sandbox the notice is shown, and events are spooled for a later daemon.
func TestInProcessTellsAndSpools(t *testing.T) {
	dir := short(t)
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("backend_url: http://localhost:9\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"SERVICE_TELEMETRY", "DO_NOT_TRACK", "CI", "SERVICE_BACKEND_URL"} {
		t.Setenv(name, "")
	}
	in, out := io.Pipe()
	answers, answer := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- InProcess(t.Context(), Options{Dir: dir, Stderr: io.Discard}, in, answer) }()
	lines := bufio.NewReader(answers)
	var told []bool
	for i, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"whoAmI","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"whoAmI","arguments":{}}}`,
	} {
		if _, err := io.WriteString(out, line+"\n"); err != nil {
			t.Fatal(err)
		}
		got, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			told = append(told, strings.Contains(got, "telemetry is on"))
		}
	}
	if !told[0] || told[1] {
		t.Errorf("told: %v", told)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var install map[string]string
	data, err := os.ReadFile(filepath.Join(dir, "install.json"))
	if err != nil || json.Unmarshal(data, &install) != nil || install["noticeShownAt"] == "" {
		t.Errorf("install.json is %s (error %v), want noticeShownAt", data, err)
	}
	waiting, err := filepath.Glob(filepath.Join(dir, "telemetry", "spool", "*.jsonl"))
	if err != nil || len(waiting) != 1 {
		t.Fatalf("%v, %v", waiting, err)
	}
	if data, _ := os.ReadFile(waiting[0]); strings.Count(string(data), `"tool.called"`) != 2 {
		t.Errorf("the spool holds %s, want two tool.called events", data)
	}
}
