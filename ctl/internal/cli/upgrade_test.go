package cli

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/blake2b"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/upgrade"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/problem"
)

// signReleases writes a list of releases, signed in the format of minisign at the given time, and returns the public
// key.
func signReleases(t *testing.T, dir string, at time.Time) (public string) {
	t.Helper()
	pk, sk, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	list := []byte(strings.Repeat("a", 64) + "  service-1.4.0-linux-amd64.tar.gz\n")
	hash := blake2b.Sum512(list)
	signature := ed25519.Sign(sk, hash[:])
	comment := fmt.Sprintf("service 1.4.0\ttimestamp:%d", at.Unix())
	global := ed25519.Sign(sk, append(slices.Clone(signature), comment...))
	line := base64.StdEncoding.EncodeToString
	const id = "12345678"
	text := fmt.Sprintf("untrusted comment: x\n%s\ntrusted comment: %s\n%s\n",
		line(append([]byte("ED"+id), signature...)),
		comment, line(global))
	for name, data := range map[string][]byte{"SHA256SUMS": list, "SHA256SUMS.minisig": []byte(text)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return line(append([]byte("Ed"+id), pk...))
}

// TestUpgradeCheck checks that the exit code shows whether there is a newer release.
func TestUpgradeCheck(t *testing.T) {
	key, other, old := "", "", ""
	serve := func(key *string, at time.Time) (url string) {
		dir := t.TempDir()
		*key = signReleases(t, dir, at)
		srv := httptest.NewServer(http.FileServer(http.Dir(dir)))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	fresh, stale := serve(&key, time.Now()), serve(&old, time.Now().Add(-upgrade.MaxAge-time.Hour))
	serve(&other, time.Now())
	version, url, k := buildinfo.Version, buildinfo.ReleaseURL, buildinfo.ReleaseKey
	defer func() { buildinfo.Version, buildinfo.ReleaseURL, buildinfo.ReleaseKey = version, url, k }()
	for name, c := range map[string]struct {
		version, url, key string
		exit              command.Exit
		code              string // expected error code
		words             string
	}{
		"older":             {"1.3.9", fresh, key, command.ExitNo, "", "newest        1.4.0"},
		"equal":             {"1.4.0", fresh, key, command.ExitYes, "", "It is up to date."},
		"newer":             {"1.5.0", fresh, key, command.ExitYes, "", "It is up to date."},
		"no releases":       {"1.3.9", "", key, command.ExitUnknown, problem.CodeReleasesNotConfigured, "servicectl upgrade"},
		"development":       {"dev", fresh, key, command.ExitUnknown, problem.CodeVersionUnknown, "1.4.0"},
		"nothing there":     {"1.3.9", fresh + "/none", key, command.ExitUnknown, problem.CodeReleasesUnreachable, "404"},
		"not signed by key": {"1.3.9", fresh, other, command.ExitUnknown, problem.CodeReleasesUntrusted, "install nothing"},
		"signed long ago":   {"1.3.9", stale, old, command.ExitUnknown, problem.CodeReleasesStale, "sign the list again"},
	} {
		t.Run(name, func(t *testing.T) {
			buildinfo.Version, buildinfo.ReleaseURL, buildinfo.ReleaseKey = c.version, c.url, c.key
			var out, errs bytes.Buffer
			exit := Main([]string{"servicectl", "upgrade", "--check"}, strings.NewReader(""), &out, &errs)
			if exit != int(c.exit) || !strings.Contains(out.String()+errs.String(), c.words) {
				t.Errorf("exit %d, want %d and %q:\n%s%s", exit, c.exit, c.words, &out, &errs)
			}
			out.Reset()
			Main([]string{"servicectl", "upgrade", "--check", "--json"}, strings.NewReader(""), &out, &errs)
			var answer struct {
				Newest string
				Newer  bool
				Error  struct{ Code, FixHint string }
			}
			if err := json.Unmarshal(out.Bytes(), &answer); err != nil || answer.Error.Code != c.code ||
				answer.Newer != (c.exit == command.ExitNo) || (answer.Newest == "1.4.0") != (c.code == "") {
				t.Errorf("--json: %s", &out)
			}
		})
	}
}
