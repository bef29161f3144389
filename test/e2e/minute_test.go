//go:build unix

package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// Every run of one minute of virtual time produces identical logs and pictures, byte for byte.
func TestVirtualTime_IsDeterministic(t *testing.T) {
	t.Parallel()
	runs := full(1000, 10)
	w := newWorld(t, "")
	a := startAgent(w, "modern", false)
	file, err := filepath.Abs("testdata/scenarios/minute.json")
	if err != nil {
		t.Fatal(err)
	}
	minute := filepath.Join(t.TempDir(), "minute")
	if out, err := exec.Command("go", "build", "-o", minute, "./testdata/apps/minute").CombinedOutput(); err != nil {
		t.Fatalf("build minute: %v\n%s", err, out)
	}
	var first string
	for n := range runs {
		s := a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual"})
		app := startApp(t, w, []string{minute}, s)
		report := a.call("replaySession", map[string]any{"sessionId": s.str(t, "sessionId"), "file": file})
		if report.IsError || report.Structured["verdict"] != "pass" {
			t.Fatalf("run %d did not pass: %v", n, report.Structured["summary"])
		}
		rows := eventRows(t, a, s.str(t, "sessionId"))
		app.Process.Kill()
		all, err := json.Marshal(map[string]any{"rows": rows, "pictures": report.Structured["pictures"]})
		if err != nil {
			t.Fatal(err)
		}
		sum := fmt.Sprintf("%x", sha256.Sum256(all))
		if first == "" {
			first = sum
			if len(rows) < 200 || rows[len(rows)-1]["at"].(float64) < 55_000 {
				t.Fatalf("only %d rows were logged, the last is %v", len(rows), rows[len(rows)-1])
			}
		}
		if sum != first {
			t.Fatalf("run %d differs from the first run:\n%s", n, all)
		}
		a.call("closeSession", map[string]any{"sessionId": s.str(t, "sessionId")})
	}
	t.Logf("%d runs, all alike: %s", runs, first)
}
