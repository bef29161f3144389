package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestInstallScript_InstallsThisRelease installs this release from its archive and uses it.
func TestInstallScript_InstallsThisRelease(t *testing.T) {
	f := newInstallFixture(t, "dash")
	archive := artefactOf(t, "service-[0-9]*-"+runtime.GOOS+"-"+runtime.GOARCH+".tar.gz")
	version := strings.TrimSuffix(filepath.Base(archive), "-"+runtime.GOOS+"-"+runtime.GOARCH+".tar.gz")
	version = strings.TrimPrefix(version, "service-")
	f.write(filepath.Base(archive), must(os.ReadFile(archive)))
	f.sign()
	f.write("install.sh", []byte(must(stampInstallScript(version, f.url, f.public))))
	f.install()
	servicectl := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), filepath.Join(f.prefix, "bin", "servicectl"), args...)
		cmd.Env = []string{"PATH=" + f.path, "HOME=" + f.home, "SERVICE_NO_AUTO_OPEN=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("servicectl %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := servicectl("version", "--json"); !strings.Contains(out, `"`+version+`"`) {
		t.Errorf("the installed version is %s, want %s", out, version)
	}
	if out := servicectl("tool", "call", "startLocalSimulation"); !strings.Contains(out, "appEndpoint") {
		t.Errorf("an installed adapter does not start:\n%s", out)
	}
	servicectl("daemon", "stop")
	f.install() // once more, with everything already installed
	if got := f.versions(); len(got) != 1 || got[0] != version {
		t.Errorf("kept versions %q", got)
	}
	for _, file := range sharedLinks {
		if _, err := os.Stat(filepath.Join(f.prefix, "share", file)); err != nil {
			t.Error(err)
		}
	}
}

// TestInstallScript_RunsInDevContainer runs the documented command for dev containers in a clean home directory.
func TestInstallScript_RunsInDevContainer(t *testing.T) {
	_, text, ok := strings.Cut(string(must(os.ReadFile("../../docs/pages/install.md"))), "```json devcontainer\n")
	text, _, end := strings.Cut(text, "```")
	var container struct {
		Image, RemoteUser, PostCreateCommand string
		RemoteEnv                            map[string]string
	}
	if err := json.Unmarshal([]byte(text), &container); err != nil || !ok || !end {
		t.Fatalf("install.md has no dev container: %v", err)
	}
	f := newInstallFixture(t, "dash")
	f.release("1.0.0")
	home := func(s string) string { return strings.ReplaceAll(s, "/home/"+container.RemoteUser, f.home) }
	shell := func(path, script string) string {
		cmd := exec.CommandContext(t.Context(), "dash", "-c", script)
		cmd.Env, cmd.Dir = []string{"PATH=" + path, "HOME=" + f.home}, t.TempDir()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	shell(f.path, strings.ReplaceAll(container.PostCreateCommand, "RELEASE_URL", f.url))
	path := strings.ReplaceAll(home(container.RemoteEnv["PATH"]), "${containerEnv:PATH}", f.path)
	if got := shell(path, "servicectl version && service-mcp version"); got != "servicectl 1.0.0\nservice-mcp 1.0.0\n" {
		t.Errorf("in the container the programs say %q", got)
	}
}
