//go:build unix

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// Choosing another model clears the panel. Each of our apps then shows its screen again without an input.
func TestApps_ShowTheirScreenOnAnotherModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	apps := deskApps(t)
	apps["hello"] = []string{"sh", "-c", `exec "$0" -endpoint "$SERVICE_GLASSES_URL" ` +
		`-token-file "$SERVICE_GLASSES_SECRET_FILE"`, filepath.Join(bin, "hello-glasses")}
	for name, app := range apps {
		text := "Desk"
		if name == "hello" {
			text = "Hello, glasses"
		}
		file := filepath.Join(t.TempDir(), name+".json")
		writeInto(t, file, strings.ReplaceAll(`{"scenario":1,"name":"model","steps":[{"expectDisplay":{"text":["TEXT"]}},
			{"device":"even_g1"},{"expectDisplay":{"text":["TEXT"]}},
			{"device":"rayban_meta"},{"device":"rayban_display"},{"expectDisplay":{"text":["TEXT"]}}]}`, "TEXT", text))
		if out, errs, code := w.ctl(append([]string{"session", "run", file, "--"}, app...)...); code != 0 {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
	}
}
