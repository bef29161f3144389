//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var projectKey = regexp.MustCompile(`spk_[A-Za-z0-9_-]{20,}`)

// A linked agent generates the module in every language with one key, which the agent never sees, and the example
// runs.
func TestGeneratedModule_AttachesInEveryLanguage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	dir := w.project
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	a := startAgent(w, "modern", false)

	asked := a.call("generateConnectionModule", map[string]any{"language": "python", "project": "com.example.trails"})
	if asked.IsError || asked.str(t, "status") != "auth_required" {
		t.Fatalf("unlinked: got %v, want auth_required", asked.Structured)
	}
	if _, err := os.Stat(filepath.Join(dir, "service")); err == nil {
		t.Error("the tool wrote files before the install was linked")
	}
	newPerson(t).approve(asked.str(t, "verificationUrl"), "ada@example.org")
	linked := a.call("completeAuthLink", map[string]any{"deviceCode": asked.str(t, "deviceCode")})
	retried, _ := linked.Structured["retried"].(map[string]any)
	if retried["status"] != "generated" || retried["keyMinted"] != true {
		t.Fatalf("after linking: got %v, want generated files with a new key", linked.Structured)
	}

	said, _ := json.Marshal(linked)
	for _, language := range []string{"typescript", "python", "kotlin", "swift"} {
		got := a.call("generateConnectionModule", map[string]any{"language": language,
			"capabilities": []string{"display", "input", "camera", "transcription"}})
		if got.IsError || got.Structured["keyMinted"] != false || got.str(t, "project") != "com.example.trails" {
			t.Errorf("%s: got %v, want no new key and the same project", language, got.Structured)
		}
		again := a.call("generateConnectionModule", map[string]any{"language": language,
			"capabilities": []string{"display", "input", "camera", "transcription"}})
		if again.str(t, "status") != "unchanged" {
			t.Errorf("%s, generated again: got %v, want unchanged", language, again.Structured["files"])
		}
		more, _ := json.Marshal([]toolResult{got, again})
		said = append(said, more...)
	}
	keyStaysPut(t, w, dir, string(said))
	t.Run("its example runs", func(t *testing.T) {
		a.t = t
		runGenerated(t, w, a, dir)
	})
	a.t = t

	verdict := a.call("validateIntegration", map[string]any{})
	if verdict.Structured["errors"] != 0.0 {
		t.Errorf("validateIntegration: got %v, want no errors", verdict.Structured)
	}
	module := filepath.Join(dir, "service", "glasses.py")
	data, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(module, append(data, "# mine\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	verdict = a.call("validateIntegration", map[string]any{})
	if found, _ := json.Marshal(verdict.Structured["findings"]); !strings.Contains(string(found),
		"generated_file_changed") {
		t.Errorf("no generated_file_changed in the findings %s", found)
	}
}

// keyStaysPut checks that the project key is only in one ignored file of mode 0600, and nowhere else where an agent,
// a repository or a log could expose it.
func keyStaysPut(t *testing.T, w *world, dir, said string) {
	t.Helper()
	file := filepath.Join(dir, "service", "service.key")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%s: got %v (error %v), want mode 0600", file, info, err)
	}
	key, err := os.ReadFile(file)
	if err != nil || !projectKey.Match(key) {
		t.Fatalf("%s contains no key: %v", file, err)
	}
	if projectKey.MatchString(said) {
		t.Error("a tool result contains the project key")
	}
	check := exec.Command("git", "check-ignore", "-q", file)
	check.Dir = dir
	if err := check.Run(); err != nil {
		t.Errorf("git does not ignore %s: %v", file, err)
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == file {
			return err
		}
		data, _ := os.ReadFile(path)
		if strings.Contains(string(data), strings.TrimSpace(string(key))) {
			t.Errorf("%s contains the project key", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// runGenerated runs the example from the tool result with the generated module.
func runGenerated(t *testing.T, w *world, a *agent, dir string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		missing(t, "python3", "apt-get install python3")
	}
	got := a.call("generateConnectionModule", map[string]any{"language": "python",
		"capabilities": []string{"display", "input", "camera", "transcription"}})
	app := filepath.Join(dir, "app.py")
	if err := os.WriteFile(app, []byte(got.str(t, "example")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := a.call("startLocalSimulation", map[string]any{"fresh": true})
	startApp(t, w, []string{python, app}, s)
	if row := a.call("waitForEvent", map[string]any{"type": "display.show",
		"timeoutSeconds": 20}); row.Structured["status"] != "found" {
		t.Fatalf("the example showed nothing on the display: %v", row.Structured)
	}
	a.call("injectInput", map[string]any{"kind": "tap", "x": 20, "y": 20})
	if verdict := a.call("expectDisplay", map[string]any{"text": []string{"Taps: 1"},
		"withinMs": 10_000}); verdict.Structured["status"] != "pass" {
		t.Errorf("after a tap: got %v, want a pass", verdict.Structured)
	}
}
