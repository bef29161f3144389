//go:build unix

package e2e

import (
	"slices"
	"testing"
)

// completeAuthLink opens the page of a code unless it was opened before, no matter which process issued the code, and
// never opens it twice.
func TestCompleteAuthLink_OpensThePageOnce(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	asks := func(w *world, args map[string]any) (code, page string) {
		r := startAgent(w, "modern", false).call("listProjects", args)
		return r.str(w.t, "deviceCode"), r.str(w.t, "verificationUrl")
	}
	closed := map[string]any{"openBrowser": false}
	for name, test := range map[string]struct {
		variables []string
		ask       func(w *world) (code, page string)
		opened    int
	}{
		"not before":      {nil, func(w *world) (string, string) { return asks(w, closed) }, 1},
		"opened":          {nil, func(w *world) (string, string) { return asks(w, map[string]any{}) }, 1},
		"another process": {nil, askByHand, 1},
		"another daemon": {nil, func(w *world) (string, string) {
			code, page := asks(w, closed)
			stopDaemon(w)
			return code, page
		}, 1},
		"another daemon opened it": {nil, func(w *world) (string, string) {
			code, page := asks(w, map[string]any{})
			stopDaemon(w)
			return code, page
		}, 1},
		"no desktop before": {nil, func(w *world) (string, string) {
			return asks(w.with("DISPLAY="), map[string]any{})
		}, 1},
		"forbidden": {[]string{"SERVICE_NO_AUTO_OPEN=1"}, func(w *world) (string, string) {
			return asks(w, closed)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", append(test.variables, "SERVICE_BACKEND_URL="+b.url)...)
			code, page := test.ask(w)
			a := startAgent(w, "legacy", false)
			for range 2 {
				wantError(t, a.call("completeAuthLink", map[string]any{"deviceCode": code, "maxWaitSeconds": 2}),
					"auth_timeout", true)
			}
			want := slices.Repeat([]string{page}, test.opened)
			if got := w.openedURLs(); !slices.Equal(got, want) {
				t.Errorf("opened %v, want %v", got, want)
			}
		})
	}
}
