//go:build unix

package app

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/consent"
	"github.com/service-dev/service/daemon/internal/identity"
	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/proto/control"
	"github.com/service-dev/service/test/controltest"
)

// documentedFiles returns the path patterns that the reference page of the state directory lists.
func documentedFiles(t *testing.T) (page string, paths []*regexp.Regexp) {
	t.Helper()
	p, ok := docs.Find("state-files")
	if !ok {
		t.Fatal("the documentation has no page state-files")
	}
	varies := regexp.MustCompile(`<[a-z0-9]+>`)
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (?:`serviced`|you|clients|adapters|embedded backend) \\|")
	for _, row := range rows.FindAllStringSubmatch(p.Markdown, -1) {
		var pattern strings.Builder
		rest := row[1]
		for _, component := range varies.FindAllString(rest, -1) {
			before, after, _ := strings.Cut(rest, component)
			pattern.WriteString(regexp.QuoteMeta(before) + "[^/]+")
			rest = after
		}
		pattern.WriteString(regexp.QuoteMeta(rest))
		paths = append(paths, regexp.MustCompile("^"+pattern.String()+"$"))
	}
	return p.Markdown, paths
}

// TestStateReferenceNamesEveryFile runs a daemon with a local session, the embedded backend and a link, and
// checks that the page lists every file and JSON field in the directory.
func TestStateReferenceNamesEveryFile(t *testing.T) {
	page, documented := documentedFiles(t)
	d := start(t, short(t), Options{})
	for _, tool := range []string{"startLocalSimulation", "createSimulatorSession"} {
		who := control.Caller{Cwd: t.TempDir(), Env: map[string]string{"SERVICE_NO_AUTO_OPEN": "1"}}
		if _, err := controltest.Tool(t.Context(), d.ctl.As(who), tool, "{}"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := controltest.Call(t.Context(), d.ctl, control.SetConsent,
		control.ConsentRequest{State: "declined"}); err != nil {
		t.Fatal(err)
	}
	// Written as if by another process: the daemon does not link in this test.
	link := account.Link{
		AuthToken: "svc_x", AccountID: "a", LinkedAt: time.Now(), Scope: "account_full", BackendURL: "https://b.example",
	}
	if err := account.Open(account.Options{Dir: d.paths.Dir}).Save(link); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	err := filepath.WalkDir(d.paths.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // removed since the directory was listed
		}
		rel, err := filepath.Rel(d.paths.Dir, path)
		if err != nil || strings.HasPrefix(rel, "run/a/") || strings.Contains(rel, ".tmp-") ||
			strings.HasPrefix(rel, "backend/service.db-") {
			return err
		}
		seen[rel] = true
		known := false
		for _, pattern := range documented {
			known = known || pattern.MatchString(rel)
		}
		if !known {
			t.Errorf("the page does not list %s", rel)
		}
		if strings.HasSuffix(rel, ".json") {
			checkFields(t, page, rel, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		account.FileName, identity.FileName, consent.FileName, "run/daemon.json", "run/codes.json", "sessions/latest.json",
	} {
		if !seen[name] {
			t.Errorf("the page lists %s, but the daemon did not create it", name)
		}
	}
	if !strings.Contains(page, "| `"+config.FileName+"` |") {
		t.Errorf("the page does not list %s", config.FileName)
	}
}

// checkFields checks that the page lists the fields of a JSON file, including objects in its lists and in maps keyed by
// directory.
func checkFields(t *testing.T, page, name, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	var fields map[string]json.RawMessage
	if err != nil || json.Unmarshal(data, &fields) != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var inner []map[string]json.RawMessage
	for field, value := range fields {
		var one map[string]json.RawMessage
		var list []map[string]json.RawMessage
		switch {
		case strings.HasPrefix(field, "/"): // a directory
			if json.Unmarshal(value, &one) == nil {
				inner = append(inner, one)
			}
			continue
		case json.Unmarshal(value, &list) == nil:
			inner = append(inner, list...)
		}
		if !strings.Contains(page, "`"+field+"`") {
			t.Errorf("the page does not name %s of %s", field, name)
		}
	}
	for _, object := range inner {
		for field := range object {
			if !strings.Contains(page, "`"+field+"`") {
				t.Errorf("the page does not name %s of %s", field, name)
			}
		}
	}
}
