//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// linkFiles creates hard links in dir to all files of from.
func linkFiles(t *testing.T, from, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		target := filepath.Join(dir, e.Name())
		_ = os.Remove(target)
		if err := os.Link(filepath.Join(from, e.Name()), target); err != nil {
			t.Fatal(err)
		}
	}
}

// keg is an installation like Homebrew's: a folder for each version, a link to the current one in opt, and links to
// programs in bin.
type keg struct {
	t      *testing.T
	prefix string
	// unlinked is set if there are no links in bin.
	unlinked bool
}

// switchTo installs a version from the given folders, later ones first, and switches the links. It deletes the old
// version.
func (k keg) switchTo(version string, from ...string) {
	k.t.Helper()
	cellar := filepath.Join(k.prefix, "Cellar", "service")
	old, _ := filepath.Glob(filepath.Join(cellar, "*"))
	for _, dir := range from {
		linkFiles(k.t, dir, filepath.Join(cellar, version, "bin"))
	}
	links := map[string]string{filepath.Join(k.prefix, "opt", "service"): filepath.Join("..", "Cellar", "service", version)}
	for _, name := range []string{"servicectl", "service-mcp"} {
		if k.unlinked {
			break
		}
		links[filepath.Join(k.prefix, "bin", name)] = filepath.Join("..", "Cellar", "service", version, "bin", name)
	}
	for link, target := range links {
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			k.t.Fatal(err)
		}
		_ = os.Remove(link)
		if err := os.Symlink(target, link); err != nil {
			k.t.Fatal(err)
		}
	}
	for _, dir := range old {
		if err := os.RemoveAll(dir); err != nil {
			k.t.Fatal(err)
		}
	}
}

// agentOf returns an agent's row of `agent list`.
func agentOf(t *testing.T, w *world, id string) map[string]any {
	t.Helper()
	out, errs, exit := w.ctl("agent", "list", "--json")
	var list struct{ Agents []map[string]any }
	if exit != 0 || json.Unmarshal([]byte(out), &list) != nil {
		t.Fatalf("agent list: exit %d: %s%s", exit, out, errs)
	}
	for _, row := range list.Agents {
		if row["id"] == id {
			return row
		}
	}
	t.Fatalf("agent list has no %s: %s", id, out)
	return nil
}

// Two upgrades that each delete the old version break neither an agent that was registered before them nor a running
// agent: both continue with the new version.
func TestUpgrade_OfVersionFoldersKeepsRegistrations(t *testing.T) {
	t.Parallel()
	next := nextRelease(t)
	for _, folder := range []string{"brew", `it's "my" brew`, strings.Repeat("b", 200), "opt only"} {
		t.Run(folder[:4], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			home := filepath.Dir(w.dir)
			k := keg{t: t, prefix: filepath.Join(home, folder), unlinked: folder == "opt only"}
			k.switchTo("1.0.0", bin)
			w.bin = filepath.Join(k.prefix, "bin")
			if k.unlinked { // as after `brew unlink`
				w.bin = filepath.Join(k.prefix, "opt", "service", "bin")
			}
			registered := filepath.Join(w.bin, "service-mcp")
			if err := os.Mkdir(filepath.Join(home, ".cursor"), 0o700); err != nil {
				t.Fatal(err)
			}
			if out, errs, exit := w.ctl("agent", "add", "cursor"); exit != 0 {
				t.Fatalf("agent add: exit %d: %s%s", exit, out, errs)
			}
			var file struct {
				MCPServers map[string]struct{ Command string }
			}
			if !readJSON(filepath.Join(home, ".cursor", "mcp.json"), &file) ||
				file.MCPServers["service"].Command != registered {
				t.Fatalf("registered: got %+v, want the link %s", file, registered)
			}
			running := startAgent(w, "modern", false)
			session := running.call("startLocalSimulation", map[string]any{}).str(t, "sessionId")
			for _, version := range []string{"9.0.0", "9.0.1"} {
				before := w.daemonPID()
				k.switchTo(version, bin, next)
				if row := agentOf(t, w, "cursor"); row["state"] != "registered" {
					t.Errorf("agent list after the upgrade to %s: got %v, want registered", version, row)
				}
				if !waitGone(before, 30*time.Second) {
					t.Fatalf("the daemon of the deleted version is still running after 30 s")
				}
				for name, a := range map[string]*agent{"running": running, "new": startAgent(w, "legacy", false)} {
					if r := a.call("getDisplayState", map[string]any{"sessionId": session}); r.IsError {
						t.Errorf("%s agent after the upgrade to %s: got %v", name, version, r.Structured)
					}
					info := a.call("getPlatformInfo", map[string]any{})
					if got := info.Structured["servicectl"]; got != filepath.Join(w.bin, "servicectl") {
						t.Errorf("%s agent: getPlatformInfo names %v, want the link", name, got)
					}
				}
				if s := statusOf(t, w); s.Replaced || s.Version != nextVersion || !strings.Contains(s.Program, k.prefix) {
					t.Errorf("status after the upgrade to %s: got %+v, want the new version", version, s)
				}
			}
		})
	}
}

// Programs work through links of every kind, from any folder, and register the link that survives upgrades.
func TestPrograms_ReachedThroughLinks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		links map[string]string // link -> target, both below the home directory; HOME is replaced with its path
		call  string            // folder of the servicectl that is called
		want  string            // the registered service-mcp
	}{
		"one link": {map[string]string{"bin/servicectl": "HOME/DIR/servicectl", "bin/service-mcp": "HOME/DIR/service-mcp"},
			"bin", "bin/service-mcp"},
		"two links": {map[string]string{"a/servicectl": "../bin/servicectl", "bin/servicectl": "../DIR/servicectl",
			"bin/service-mcp": "../DIR/service-mcp"}, "a", "bin/service-mcp"},
		"a link to the folder": {map[string]string{"current": "DIR"}, "current", "current/service-mcp"},
		"a dangling link beside it": {map[string]string{"bin/servicectl": "../DIR/servicectl", "bin/service-mcp": "../gone"},
			"bin", "DIR/service-mcp"},
		"no link": {nil, "DIR", "DIR/service-mcp"},
	} {
		for _, folder := range []string{"programs", `my "own" it's`, strings.Repeat("p", 200)} {
			t.Run(name+" "+folder[:2], func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "")
				home := filepath.Dir(w.dir)
				linkFiles(t, bin, filepath.Join(home, folder))
				below := func(path string) string { return strings.NewReplacer("DIR", folder, "HOME", home).Replace(path) }
				for link, target := range c.links {
					link = filepath.Join(home, link)
					if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.Symlink(below(target), link); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.Mkdir(filepath.Join(home, ".cursor"), 0o700); err != nil {
					t.Fatal(err)
				}
				w.bin = filepath.Join(home, below(c.call))
				if out, errs, exit := w.ctl("tool", "call", "startLocalSimulation"); exit != 0 {
					t.Errorf("startLocalSimulation: exit %d: %s%s", exit, out, errs)
				}
				if out, errs, exit := w.ctl("agent", "add", "cursor"); exit != 0 {
					t.Errorf("agent add: exit %d: %s%s", exit, out, errs)
				}
				var file struct {
					MCPServers map[string]struct{ Command string }
				}
				want := filepath.Join(home, below(c.want))
				if !readJSON(filepath.Join(home, ".cursor", "mcp.json"), &file) || file.MCPServers["service"].Command != want {
					t.Errorf("registered: got %+v, want %s", file, want)
				}
				if row := agentOf(t, w, "cursor"); row["state"] != "registered" {
					t.Errorf("agent list: got %v, want registered", row)
				}
			})
		}
	}
}

// An agent with the path of a deleted version is reported with the command that corrects it.
func TestAgentList_NamesStalePath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	home := filepath.Dir(w.dir)
	stale := filepath.Join(home, "Cellar", "service", "0.9.0", "bin", "service-mcp")
	if err := os.Mkdir(filepath.Join(home, ".cursor"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(home, ".cursor", "mcp.json")
	write(t, config, fmt.Appendf(nil, `{"mcpServers":{"service":{"command":%q}}}`, stale))
	row := agentOf(t, w, "cursor")
	if row["state"] != "other_path" || row["program"] != stale || !strings.Contains(fmt.Sprint(row["fix"]), "servicectl agent add cursor") {
		t.Errorf("agent list: got %v, want other_path and the next step", row)
	}
	if out, errs, exit := w.ctl("agent", "list"); exit != 0 || !strings.Contains(out, "does not exist") ||
		!strings.Contains(errs, "servicectl agent add cursor") {
		t.Errorf("agent list: exit %d: %s%s", exit, out, errs)
	}
	w.ctl("agent", "add", "cursor")
	if row := agentOf(t, w, "cursor"); row["state"] != "registered" {
		t.Errorf("after agent add: got %v, want registered", row)
	}
}
