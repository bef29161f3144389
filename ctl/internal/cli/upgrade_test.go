package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/buildinfo"
)

// TestUpgradeCheck tells by its exit code whether there is a newer release. The files are those of the package upgrade.
func TestUpgradeCheck(t *testing.T) {
	testdata := filepath.Join("..", "upgrade", "testdata")
	key, err := os.ReadFile(filepath.Join(testdata, "release.pub"))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.FileServer(http.Dir(testdata)))
	defer srv.Close()
	version, url, k := buildinfo.Version, buildinfo.ReleaseURL, buildinfo.ReleaseKey
	defer func() { buildinfo.Version, buildinfo.ReleaseURL, buildinfo.ReleaseKey = version, url, k }()
	for name, c := range map[string]struct {
		version, url string
		exit         int
		code         string // of the error
		words        string
	}{
		"older":             {"1.3.9", srv.URL, exitNo, "", "newest        1.4.0"},
		"equal":             {"1.4.0", srv.URL, exitYes, "", "It is up to date."},
		"newer":             {"1.5.0", srv.URL, exitYes, "", "It is up to date."},
		"no releases":       {"1.3.9", "", exitUnknown, codeNoReleases, "servicectl upgrade"},
		"development":       {"dev", srv.URL, exitUnknown, codeDevelopmentVersion, "1.4.0"},
		"nothing there":     {"1.3.9", srv.URL + "/none", exitUnknown, codeReleasesUnreached, "404"},
		"not signed by key": {"1.3.9", srv.URL, exitUnknown, codeReleasesUntrusted, "install nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			buildinfo.Version, buildinfo.ReleaseURL, buildinfo.ReleaseKey = c.version, c.url, strings.TrimSpace(string(key))
			if c.code == codeReleasesUntrusted {
				other, err := os.ReadFile(filepath.Join(testdata, "other.pub"))
				if err != nil {
					t.Fatal(err)
				}
				buildinfo.ReleaseKey = string(other)
			}
			var out, errs bytes.Buffer
			if exit := Main([]string{"servicectl", "upgrade", "--check"}, strings.NewReader(""), &out, &errs); exit != c.exit ||
				!strings.Contains(out.String()+errs.String(), c.words) {
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
				answer.Newer != (c.exit == exitNo) || (answer.Newest == "1.4.0") != (c.code == "") {
				t.Errorf("--json: %s", &out)
			}
		})
	}
}
