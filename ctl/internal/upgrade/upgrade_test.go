package upgrade

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/internal/buildinfo"
)

// read returns a file in testdata. The signatures were made with Debian's minisign.
func read(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "\r\n", "\n")
}

func TestVerify(t *testing.T) {
	key, sums, signature := read(t, "release.pub"), read(t, "SHA256SUMS"), read(t, "SHA256SUMS.minisig")
	comment, err := verify(key, []byte(sums), []byte(signature))
	at, dated := signedAt(comment)
	if err != nil || !dated || !strings.Contains(comment, strconv.FormatInt(at.Unix(), 10)) {
		t.Fatalf("what minisign signed: comment %q, error %v", comment, err)
	}
	lines := strings.Split(signature, "\n")
	with := func(n int, line string) string {
		other := append([]string{}, lines...)
		other[n] = line
		return strings.Join(other, "\n")
	}
	for name, c := range map[string]struct{ key, sums, signature, want string }{
		"one byte of the file changed":   {key, strings.Replace(sums, "1.4.0", "1.5.0", 1), signature, "does not match"},
		"an appended line":               {key, sums + "\n", signature, "does not match"},
		"another key":                    {read(t, "other.pub"), sums, signature, "made with another key"},
		"another comment":                {key, sums, with(2, "trusted comment: release 1.5.0"), "comment does not match"},
		"no comment":                     {key, sums, lines[0] + "\n" + lines[1] + "\n", "must be a minisign signature"},
		"another signature's comment":    {key, sums, with(3, lines[1]), "comment cannot be read"},
		"a signature without prehashing": {key, sums, read(t, "legacy.minisig"), `algorithm "Ed"`},
		"a cut signature":                {key, sums, with(1, lines[1][:40]), "cannot be read"},
		"a web page":                     {key, sums, "<html>\n\n\n\n", "must be a minisign signature"},
		"no signature":                   {key, sums, "", "must be a minisign signature"},
		"a key that is none":             {"AAAA", sums, signature, "public key"},
		"a signature as key":             {lines[1], sums, signature, "public key"},
	} {
		_, err := verify(c.key, []byte(c.sums), []byte(c.signature))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func FuzzVerify(f *testing.F) {
	key := read(f, "release.pub")
	f.Add(key, read(f, "SHA256SUMS"), read(f, "SHA256SUMS.minisig"))
	f.Add(key, "", "untrusted comment: x\n\ntrusted comment: \n\n")
	want := read(f, "SHA256SUMS")
	f.Fuzz(func(t *testing.T, key, sums, signature string) {
		if _, err := verify(key, []byte(sums), []byte(signature)); err == nil && sums != want {
			t.Errorf("a forged file is accepted: %q, %q, %q", key, sums, signature)
		}
	})
}

func TestNewestIn(t *testing.T) {
	for sums, want := range map[string]string{
		read(t, "SHA256SUMS"): "1.4.0",
		"x  service-1.9.0-linux-amd64.tar.gz\nx  service-1.10.0-darwin-arm64.tar.gz\n":      "1.10.0",
		"x  service-2.0.0-rc.1-linux-amd64.tar.gz\nx  service-1.0.0-linux-amd64.tar.gz\r\n": "2.0.0-rc.1",
		"x  service-backend_3.0.0_amd64.deb\nx  service-agent-plugin.zip\n":                 "",
		"x  service-1.0.0-linux-amd64.tar\nx  service-\x1b[31m-linux-amd64.zip":             "",
		"x  service-1.0.0-\x1b[31m-linux-amd64.zip\nx  service-1.0.0.zip\n":                 "",
		"": "",
	} {
		if got, err := newestIn(sums); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", sums, got, err, want)
		}
	}
}

func FuzzNewestIn(f *testing.F) {
	f.Add(read(f, "SHA256SUMS"))
	f.Fuzz(func(t *testing.T, sums string) {
		if got, err := newestIn(sums); err == nil && (len(got) > maxVersionLength || strings.ContainsAny(got, "\x1b\n /")) {
			t.Errorf("%q: version %q", sums, got)
		}
	})
}

func TestNewest(t *testing.T) {
	signed := signingTime(t)
	files := map[string]string{"SHA256SUMS": read(t, "SHA256SUMS"), "SHA256SUMS.minisig": read(t, "SHA256SUMS.minisig")}
	good := func(w http.ResponseWriter, r *http.Request) {
		text, ok := files[filepath.Base(r.URL.Path)]
		if !ok || r.Method != http.MethodGet || r.URL.RawQuery != "" || r.Header.Get("User-Agent") != "servicectl" {
			http.Error(w, "no", http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(text))
	}
	only := func(name string, instead http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if filepath.Base(r.URL.Path) == name {
				instead(w, r)
				return
			}
			good(w, r)
		}
	}
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"a release":    {good, ""},
		"no signature": {only("SHA256SUMS.minisig", http.NotFound), "404"},
		"a signature without a time": {only("SHA256SUMS.minisig", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(read(t, "undated.minisig")))
		}), "has no time"},
		"another file": {only("SHA256SUMS", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("x"))
		}), "not signed"},
		"an endless file":           {only("SHA256SUMS", endless), "is longer than"},
		"an endless signature":      {only("SHA256SUMS.minisig", endless), "is longer than"},
		"a redirect to plain http":  {only("SHA256SUMS", redirect("http://192.0.2.1/SHA256SUMS")), "refused the redirect"},
		"a redirect to a file":      {only("SHA256SUMS", redirect("file:///etc/passwd")), "refused the redirect"},
		"a redirect without an end": {only("SHA256SUMS", redirect("SHA256SUMS")), "refused the redirect"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(c.serve)
			defer srv.Close()
			got, err := Source{URL: srv.URL + "/dist/", Key: read(t, "release.pub")}.Newest(t.Context(), signed)
			switch {
			case c.want == "" && (err != nil || got != "1.4.0"):
				t.Errorf("got %q, %v; want 1.4.0", got, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %q, %v; want an error with %q", got, err, c.want)
			}
			if strings.Contains(c.want, "not signed") != errors.Is(err, ErrUntrusted) {
				t.Errorf("%v: is ErrUntrusted %t", err, errors.Is(err, ErrUntrusted))
			}
		})
	}
}

// A list that was signed too long ago may hide later releases.
func TestNewest_RefusesAnOldList(t *testing.T) {
	srv := httptest.NewServer(http.FileServer(http.Dir("testdata")))
	defer srv.Close()
	s, signed := Source{URL: srv.URL, Key: read(t, "release.pub")}, signingTime(t)
	for age, stale := range map[time.Duration]bool{-24 * time.Hour: false, MaxAge: false, MaxAge + time.Second: true,
		10 * MaxAge: true} {
		got, err := s.Newest(t.Context(), signed.Add(age))
		if errors.Is(err, ErrStale) != stale || (got == "1.4.0") == stale {
			t.Errorf("signed %s ago: got %q, %v; stale %t", age, got, err, stale)
		}
	}
}

// signingTime returns when the list of testdata was signed.
func signingTime(t *testing.T) time.Time {
	t.Helper()
	var at time.Time
	ok := false
	for line := range strings.Lines(read(t, "SHA256SUMS.minisig")) {
		if comment, isSigned := strings.CutPrefix(line, trustedComment); isSigned {
			at, ok = signedAt(strings.TrimSpace(comment))
		}
	}
	if !ok {
		t.Fatal("the signature of testdata has no time")
	}
	return at
}

func endless(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		if _, err := w.Write(make([]byte, 64<<10)); err != nil {
			return
		}
	}
}

// Without an address or a key, or with an unsafe address, no request is made.
func TestNewestAsksNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 1)
	go func() {
		if conn, err := l.Accept(); err == nil {
			conn.Close()
			asked <- struct{}{}
		}
		close(asked)
	}()
	// Every request would go to the listener.
	t.Setenv("HTTP_PROXY", "http://"+l.Addr().String())
	t.Setenv("HTTPS_PROXY", "http://"+l.Addr().String())
	for _, s := range []Source{
		{}, {Key: "k"}, {URL: "http://" + l.Addr().String()}, {URL: "http://example.org", Key: "k"},
		{URL: "ftp://example.org", Key: "k"}, {URL: "example.org", Key: "k"}, {URL: ":", Key: "k"},
	} {
		_, err := s.Newest(t.Context(), time.Now())
		if err == nil || (s.URL == "" || s.Key == "") != errors.Is(err, ErrNotConfigured) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	l.Close()
	if _, called := <-asked; called {
		t.Error("something was asked")
	}
}

func TestInstalledAt(t *testing.T) {
	root := t.TempDir()
	home := filepath.Join(root, "home")
	t.Setenv("HOME", home)
	for dir, want := range map[string]Installed{
		"/opt/homebrew/Cellar/service-toolkit/1.2.0/libexec": {By: "homebrew", Upgrade: "brew upgrade service-toolkit"},
		"/C/Users/a/scoop/apps/service-toolkit/1.2.0/bin": {
			By: "scoop", Upgrade: "servicectl daemon stop; scoop update service-toolkit"},
		"/C/a/WinGet/Packages/ServiceDev.ServiceToolkit_x/b": {
			By: "winget", Upgrade: "winget upgrade --id ServiceDev.ServiceToolkit"},
		filepath.ToSlash(home) + "/.local/lib/service/1.2.0/bin": {By: "script", Upgrade: "sh install.sh"},
		"/opt/it's/lib/service/1.2.0/bin": {
			By: "script", Upgrade: `sh install.sh --prefix '/opt/it'\''s'`},
		"/usr/lib/service": {By: "archive"},
		"/opt/service":     {By: "archive"},
	} {
		got := installedAt(dir, root)
		if got.By != want.By || got.Upgrade != want.Upgrade || (got.Remove == "") != (want.By == "archive") {
			t.Errorf("%s: got %+v, want %+v", dir, got, want)
		}
	}
	for _, c := range []struct{ file, by string }{
		{"var/lib/rpm/rpmdb.sqlite", "rpm"}, {"lib/apk/db/installed", "apk"},
		{"var/lib/pacman/local/service-toolkit-1.2.0-1/desc", "pacman"}, {"var/lib/dpkg/info/service-toolkit.list", "deb"},
		{"src/go.mod", ""}, {"src/Makefile", "source"},
	} {
		path := filepath.Join(root, c.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		dir := "/usr/lib/service"
		if strings.HasPrefix(c.file, "src/") {
			dir = filepath.Join(root, "src", "bin")
		}
		if got := installedAt(dir, root); c.by != "" && (got.By != c.by || got.Upgrade == "" || got.Remove == "") {
			t.Errorf("%s with %s: got %+v, want %s", dir, c.file, got, c.by)
		}
	}
}

// The file names match the release's; see table_test.go of packaging/release.
func TestCommand(t *testing.T) {
	deb, other := runtime.GOARCH, map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	other = cmp.Or(other, deb)
	for version, want := range map[string]map[string]string{
		"1.4.0-rc.1": {
			"deb":    "service-toolkit_1.4.0~rc.1-1_" + deb + ".deb",
			"rpm":    "service-toolkit-1.4.0~rc.1-1." + other + ".rpm",
			"apk":    "service-toolkit_1.4.0_rc1-r1_" + other + ".apk",
			"pacman": "service-toolkit-1.4.0rc1-1-" + other + ".pkg.tar.zst",
		},
		"1.4.0": {"deb": "service-toolkit_1.4.0-1_" + deb + ".deb", "rpm": "service-toolkit-1.4.0-1." + other + ".rpm"},
		"":      {"apk": "service-toolkit_VERSION-r1_" + other + ".apk"},
	} {
		for by, file := range want {
			for _, m := range packageManagers {
				if m.by != by {
					continue
				}
				command, download := Installed{By: by, Upgrade: m.upgrade}.Command(version)
				if download != file || !strings.HasSuffix(command, " ./"+file) {
					t.Errorf("%s %s: %s, download %s, want %s", by, version, command, download, file)
				}
			}
		}
	}
	if command, _ := (Installed{By: "source", Upgrade: "cd /a/VERSION"}).Command("1.4.0"); command != "cd /a/VERSION" {
		t.Errorf("a folder's name was changed: %s", command)
	}
}

// Without a release URL install.sh cannot download, so it gets the archive.
func TestCommand_ScriptWithoutReleaseURL(t *testing.T) {
	url := buildinfo.ReleaseURL
	t.Cleanup(func() { buildinfo.ReleaseURL = url })
	script := Installed{By: "script", Upgrade: "sh install.sh --prefix /opt"}
	archive := "service-1.4.0-rc.1-" + runtime.GOOS + "-" + runtime.GOARCH + ".tar.gz"
	buildinfo.ReleaseURL = ""
	if command, download := script.Command("1.4.0-rc.1"); runtime.GOOS != "windows" &&
		(command != "sh install.sh --prefix /opt --from "+archive || download != archive) {
		t.Errorf("without: %s, download %s", command, download)
	}
	if got := script.ScriptURL(); got != "" {
		t.Errorf("without a release URL, install.sh is at %s", got)
	}
	buildinfo.ReleaseURL = "https://releases.example.org/"
	if command, download := script.Command(""); command != "sh install.sh --prefix /opt" || download != "install.sh" {
		t.Errorf("with: %s, download %s", command, download)
	}
	if got := script.ScriptURL(); got != "https://releases.example.org/install.sh" {
		t.Errorf("install.sh is at %q", got)
	}
	if got := (Installed{By: "deb"}).ScriptURL(); got != "" {
		t.Errorf("a package is removed with install.sh at %s", got)
	}
}
