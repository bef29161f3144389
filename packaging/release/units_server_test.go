package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/test/usersystemd"
)

// TestUnits_RunServerUnderSystemd starts the packaged unit under a real systemd. The server reads settings and keys
// that only root may read, writes its database, responds and stops. Without keys it does not start.
func TestUnits_RunServerUnderSystemd(t *testing.T) {
	bin := t.TempDir()
	if !usersystemd.Inside() {
		requireRoot(t)
		root := t.TempDir()
		output(t, "dpkg-deb", "-x", artefactOf(t, "service-backend_*_amd64.deb"), root)
		for _, file := range []string{
			"usr/bin/service-backend", "usr/lib/systemd/system/service-backend.service",
			"usr/lib/sysusers.d/service-backend.conf", "etc/service-backend/config.yaml",
		} {
			output(t, "cp", filepath.Join(root, file), bin)
		}
	}
	if !usersystemd.EnterSystem(t, bin) {
		return
	}
	const dir = "/etc/service-backend"
	unit, err := os.ReadFile("/usr/local/bin/service-backend.service")
	if err != nil {
		t.Fatal(err)
	}
	const log = "/var/log/server.log" // there is no journal, and /usr is read-only here
	text := strings.ReplaceAll(string(unit), "=/usr/bin/", "=/usr/local/bin/")
	text = strings.Replace(text, "[Service]\n", "[Service]\nStandardError=append:"+log+"\n", 1)
	t.Cleanup(func() {
		if said, err := os.ReadFile(log); t.Failed() {
			t.Logf("the server's log (%v):\n%s", err, said)
		}
	})
	if err := os.WriteFile("/etc/systemd/system/service-backend.service", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	output(t, "systemd-sysusers", "/usr/local/bin/service-backend.conf")
	output(t, "install", "-D", "-m", "600", "/usr/local/bin/config.yaml", dir+"/config.yaml")
	output(t, "systemctl", "daemon-reload")
	if out, err := command(t.Context(), "/", "systemctl", "start", "service-backend").Output(); err == nil {
		t.Fatalf("the server starts without keys: %s", out)
	}
	for _, key := range []string{"hmac.key", "credentials.key"} {
		if err := os.WriteFile(filepath.Join(dir, key), []byte(strings.Repeat("ab", 32)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	output(t, "systemctl", "start", "service-backend")
	answer, err := http.Get("http://localhost:8080/api/health")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), `"ok":true`) {
		t.Errorf("got status %d, %s, %v", answer.StatusCode, body, err)
	}
	owner := strings.TrimSpace(output(t, "stat", "-c", "%U %a", "/var/lib/service-backend/service.db"))
	if owner != "service-backend 600" {
		t.Errorf("the database belongs to %s", owner)
	}
	output(t, "systemctl", "stop", "service-backend")
	state := output(t, "systemctl", "show", "-p", "Result", "service-backend")
	if strings.TrimSpace(state) != "Result=success" {
		t.Errorf("after the stop: %s", state)
	}
}
