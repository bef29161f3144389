package programpath

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// folder creates programs and links in a new folder: a line "a/b" is a program, "a/b -> ../c" a link.
func folder(t *testing.T, name, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: symbolic links need a privilege on Windows")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root = filepath.Join(root, name)
	for line := range strings.Lines(text) {
		path, target, isLink := strings.Cut(strings.TrimSpace(line), " -> ")
		if path == "" {
			continue
		}
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if isLink {
			err = os.Symlink(strings.ReplaceAll(target, "ROOT", root), path)
		} else {
			err = os.WriteFile(path, []byte(path), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// layouts lists installations: the files, the path under which servicectl is called, the folders of PATH, the path of
// service-mcp to register, and the path of serviced to start.
var layouts = []struct{ name, files, called, path, register, start string }{
	{"package", `
		usr/lib/service/servicectl
		usr/lib/service/service-mcp
		usr/lib/service/serviced
		usr/bin/servicectl -> ../lib/service/servicectl
		usr/bin/service-mcp -> ../lib/service/service-mcp`,
		"usr/bin/servicectl", "", "usr/bin/service-mcp", "usr/lib/service/serviced"},
	{"package, called by its file", `
		usr/lib/service/servicectl
		usr/lib/service/service-mcp
		usr/bin/service-mcp -> ../lib/service/service-mcp`,
		"usr/lib/service/servicectl", "", "usr/bin/service-mcp", "usr/lib/service/serviced"},
	{"Homebrew", `
		brew/Cellar/service/1.2.0/bin/servicectl
		brew/Cellar/service/1.2.0/bin/service-mcp
		brew/Cellar/service/1.2.0/bin/serviced
		brew/opt/service -> ../Cellar/service/1.2.0
		brew/bin/servicectl -> ../Cellar/service/1.2.0/bin/servicectl
		brew/bin/service-mcp -> ../Cellar/service/1.2.0/bin/service-mcp`,
		"brew/bin/servicectl", "", "brew/bin/service-mcp", "brew/Cellar/service/1.2.0/bin/serviced"},
	{"Homebrew without links in bin", `
		brew/Cellar/service/1.2.0/bin/servicectl
		brew/Cellar/service/1.2.0/bin/service-mcp
		brew/Cellar/service/1.2.0/bin/serviced
		brew/opt/service -> ../Cellar/service/1.2.0`,
		"brew/opt/service/bin/servicectl", "", "brew/opt/service/bin/service-mcp", "brew/opt/service/bin/serviced"},
	{"Scoop", `
		scoop/apps/service/1.2.0/servicectl
		scoop/apps/service/1.2.0/service-mcp
		scoop/apps/service/1.2.0/serviced
		scoop/apps/service/current -> 1.2.0`,
		"scoop/apps/service/1.2.0/servicectl", "", "scoop/apps/service/current/service-mcp",
		"scoop/apps/service/1.2.0/serviced"},
	{"versions side by side", `
		home/.local/lib/service/service-1.2.0-linux-amd64/bin/servicectl
		home/.local/lib/service/service-1.2.0-linux-amd64/bin/service-mcp
		home/.local/lib/service/service-1.2.0-linux-amd64/bin/serviced
		home/.local/lib/service/current -> service-1.2.0-linux-amd64
		home/.local/bin/servicectl -> ../lib/service/current/bin/servicectl
		home/.local/bin/service-mcp -> ../lib/service/current/bin/service-mcp`,
		"home/.local/bin/servicectl", "", "home/.local/bin/service-mcp", "home/.local/lib/service/current/bin/serviced"},
	{"link of a link", `
		tool/servicectl
		tool/service-mcp
		tool/serviced
		one/servicectl -> ROOT/tool/servicectl
		one/service-mcp -> ROOT/tool/service-mcp
		two/servicectl -> ../one/servicectl`,
		"two/servicectl", "", "one/service-mcp", "tool/serviced"},
	{"link to the folder", `
		releases/a7f3/servicectl
		releases/a7f3/service-mcp
		releases/a7f3/serviced
		now -> releases/a7f3`,
		"now/servicectl", "", "now/service-mcp", "now/serviced"},
	{"links in PATH, called by name", `
		tool-1.2.0/servicectl
		tool-1.2.0/service-mcp
		links/servicectl -> ../tool-1.2.0/servicectl
		links/service-mcp -> ../tool-1.2.0/service-mcp`,
		"", "empty:links", "links/service-mcp", "tool-1.2.0/serviced"},
	{"links to another version", `
		tool-1.2.0/servicectl
		tool-1.2.0/service-mcp
		tool-1.1.0/service-mcp
		bin/service-mcp -> ../tool-1.1.0/service-mcp
		links/servicectl -> ../tool-1.2.0/servicectl
		links/service-mcp -> ../tool-1.1.0/service-mcp
		links/serviced -> ../tool-1.1.0/serviced`,
		"links/servicectl", "links", "tool-1.2.0/service-mcp", "tool-1.2.0/serviced"},
	{"dangling links", `
		tool-1.2.0/servicectl
		tool-1.2.0/service-mcp
		links/servicectl -> ../tool-1.2.0/servicectl
		links/service-mcp -> ../tool-0.9.0/service-mcp
		bin/service-mcp -> nowhere`,
		"links/servicectl", "links", "tool-1.2.0/service-mcp", "tool-1.2.0/serviced"},
	{"no links", `
		src/bin/servicectl
		src/bin/service-mcp
		src/bin/serviced`,
		"src/bin/servicectl", "src/bin", "src/bin/service-mcp", "src/bin/serviced"},
}

func TestPathsOfLayouts(t *testing.T) {
	for _, name := range []string{"x", `it's "a" folder`, strings.Repeat("l", 200)} {
		for _, l := range layouts {
			t.Run(l.name, func(t *testing.T) {
				root := folder(t, name, l.files)
				var dirs []string
				for dir := range strings.SplitSeq(l.path, ":") {
					dirs = append(dirs, filepath.Join(root, dir))
				}
				called := "servicectl"
				if l.called != "" {
					called = filepath.Join(root, l.called)
				}
				file := called
				if l.called == "" {
					file = filepath.Join(dirs[1], called)
				}
				i := newInstallation(file, called, dirs)
				if i.called == "" {
					t.Errorf("%s does not lead to the program %s", called, i.file)
				}
				if got, want := i.stable("service-mcp"), filepath.Join(root, l.register); got != want {
					t.Errorf("register %s, want %s", got, want)
				}
				if got, want := i.beside("serviced"), filepath.Join(root, l.start); got != want {
					t.Errorf("start %s, want %s", got, want)
				}
			})
		}
	}
}

// After an upgrade has switched the link, a running program finds the other programs of the new version. Its own
// folder still contains its own version.
func TestBesideFollowsAnUpgrade(t *testing.T) {
	root := folder(t, "x", `
		Cellar/service/1.2.0/bin/service-mcp
		Cellar/service/1.2.0/bin/serviced
		Cellar/service/1.3.0/bin/service-mcp
		Cellar/service/1.3.0/bin/serviced
		opt/service -> ../Cellar/service/1.2.0`)
	called := filepath.Join(root, "opt/service/bin/service-mcp")
	i := newInstallation(called, called, nil)
	link := filepath.Join(root, "opt/service")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, "Cellar/service/1.2.0")); err != nil {
		t.Fatal(err)
	}
	if got, want := i.beside("serviced"), filepath.Join(root, "Cellar/service/1.2.0/bin/serviced"); got != want {
		t.Errorf("without the link: start %s, want %s", got, want)
	}
	if err := os.Symlink("../Cellar/service/1.3.0", link); err != nil {
		t.Fatal(err)
	}
	if got, want := i.beside("serviced"), filepath.Join(root, "opt/service/bin/serviced"); got != want {
		t.Errorf("after the upgrade: start %s, want %s", got, want)
	}
}

func TestCalledPathMustLeadToTheProgram(t *testing.T) {
	root := folder(t, "x", "a/servicectl\nb/servicectl\n")
	file := filepath.Join(root, "a/servicectl")
	for _, argv0 := range []string{"", "servicectl", filepath.Join(root, "b/servicectl"), "/", "./nowhere"} {
		if i := newInstallation(file, argv0, []string{filepath.Join(root, "b")}); i.called != "" {
			t.Errorf("argv[0] %q: called as %s, want unknown", argv0, i.called)
		}
	}
	t.Chdir(root)
	if i := newInstallation(file, "a/servicectl", nil); i.called != file {
		t.Errorf("relative path: called as %s, want %s", i.called, file)
	}
}

func TestSame(t *testing.T) {
	root := folder(t, "x", "a/p\nb/p\nlinks/p -> ../a/p\nlinks/gone -> nowhere\n")
	in := func(path string) string { return filepath.Join(root, path) }
	t.Setenv("PATH", in("links"))
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{in("a/p"), in("a/p"), true}, {in("links/p"), in("a/p"), true}, {in("a/p"), in("links/p"), true},
		{"p", in("a/p"), true}, {in("b/p"), in("a/p"), false}, {in("gone"), in("gone"), false},
		{in("links/gone"), in("a/p"), false}, {"", in("a/p"), false}, {"q", in("a/p"), false},
	} {
		if got := Same(c.a, c.b); got != c.want {
			t.Errorf("Same(%q, %q) = %t, want %t", c.a, c.b, got, c.want)
		}
	}
}

func TestIsVersioned(t *testing.T) {
	for path, want := range map[string]bool{
		"/opt/service-1.2.0/bin": true, "/Cellar/service/1.2.0": true, "v10.20.30": true, "/x/service_1.2.3_1": true,
		"/opt/go1.26/bin": false, "/a/1/2/3": false, "/usr/lib/service": false, "/a.b.c": false, "1.2-3": false,
	} {
		if got := isVersioned(path); got != want {
			t.Errorf("isVersioned(%s) = %t, want %t", path, got, want)
		}
	}
}
