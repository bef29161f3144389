//go:build unix

package rendezvous

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestDir(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ home, dir, want string }{
		{"/home/ada", "", "/home/ada/.service"},
		{"/home/ada/", "", "/home/ada/.service"},
		{"/home/ada", "~", "/home/ada"},
		{"/home/ada", "~/x", "/home/ada/x"},
		{"/home/ada", "~//x/../y/", "/home/ada/y"},
		{"/home/ada", "/srv/x/", "/srv/x"},
		{"/home/ada", "/srv/~/x", "/srv/~/x"},
		{"relative", "/srv/x", "/srv/x"},
		{"/home/ä d a", "~/x y", "/home/ä d a/x y"},
		{"/home/ada", "x", ""},
		{"/home/ada", "./x", ""},
		{"/home/ada", "../x", ""},
		{"/home/ada", "~bob/x", ""},
		{"relative", "", ""},
		{"relative", "~/x", ""},
		{".", "", ""},
		{"", "", ""},
		{"", "~/x", ""},
	} {
		t.Setenv("HOME", c.home)
		t.Setenv(dirVariable, c.dir)
		got, err := Dir()
		if c.want == "" && err == nil || c.want != "" && (err != nil || got != c.want) {
			t.Errorf("HOME=%q %s=%q: got %q, %v; want %q", c.home, dirVariable, c.dir, got, err, c.want)
		}
	}
}

// Even with a long state directory and TMPDIR, the paths of sockets and of the adapters' directory stay within every
// platform's limit. Two state directories never share paths, and all programs of a user compute the same paths.
func TestPathsStayShort(t *testing.T) {
	t.Setenv("TMPDIR", "/tmp/"+strings.Repeat("t", 150))
	for _, runtime := range []string{"", "/run/user/1000", "relative", "/" + strings.Repeat("r", 60)} {
		t.Setenv("XDG_RUNTIME_DIR", runtime)
		seen := map[string]string{}
		for n := 1; n < 400; n++ {
			dir := filepath.Join("/home", strings.Repeat("x", n))
			p, err := PathsOf(dir)
			if err != nil {
				t.Fatalf("directory of %d bytes: %v", n, err)
			}
			if len(p.Control) > MaxSocketPath || len(p.MCP) > MaxSocketPath || len(p.Adapters()) > MaxSocketPath-30 {
				t.Fatalf("directory of %d bytes: the paths %s, %s are too long", n, p.Control, p.Adapters())
			}
			if strings.Contains(p.Control, "tttt") || strings.Contains(p.Control, "rrrr") ||
				!filepath.IsAbs(p.Control) {
				t.Fatalf("with XDG_RUNTIME_DIR=%s: unexpected path %s", runtime, p.Control)
			}
			if p.Run != filepath.Join(dir, RunDir) {
				t.Fatalf("the locks moved with the sockets: %s", p.Run)
			}
			for _, place := range []string{p.Control, p.Adapters()} {
				if other, taken := seen[place]; taken {
					t.Fatalf("the path %s is shared by %s and %s", place, other, dir)
				}
				seen[place] = dir
			}
			if again, _ := PathsOf(dir); again != p {
				t.Fatalf("two calls returned different paths for %s", dir)
			}
		}
	}
}

// Proxy addresses leave the caller's process without their passwords.
func TestEnviron_HasNoPassword(t *testing.T) {
	for value, want := range map[string]string{
		"":                                  "",
		"proxy.test:3128":                   "proxy.test:3128",
		"http://proxy.test:3128":            "http://proxy.test:3128",
		"http://ada:geheim@proxy.test:3128": "http://USER:PASSWORD@proxy.test:3128",
		"http://ada:ge@heim@proxy.test":     "http://USER:PASSWORD@proxy.test",
		"http://ada:://geheim@proxy.test":   "http://USER:PASSWORD@proxy.test",
		"ada:geheim@proxy.test:3128":        "USER:PASSWORD@proxy.test:3128",
		"ada:ge://heim@proxy.test:3128":     "USER:PASSWORD@proxy.test:3128",
		"ftp://ada:geheim@proxy.test":       "USER:PASSWORD@proxy.test",
		"SOCKS5h://ada:geheim@proxy.test":   "SOCKS5h://USER:PASSWORD@proxy.test",
	} {
		for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
			t.Setenv(name, value)
			if got, ok := Environ()[name]; got != want || !ok {
				t.Errorf("%s=%s: got %q, want %q", name, value, got, want)
			}
		}
	}
}
