//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/test/chromium"
	"github.com/service-dev/service/test/llmtest"
)

// Limits on how much a page may load, in bytes after decompression.
const (
	maxPage      = 100_000
	maxSimulator = 11 << 20 // mostly the renderer, which shapes text of all scripts; 2.8 MB compressed
)

// emptyPages is the number of accountPages, counted from the first, that are also checked for an account without
// data.
const emptyPages = 6

// accountPages lists the pages for a signed-in user; {app} is a project's id.
var accountPages = []struct{ name, path string }{
	{"home", "/"},
	{"overview", "/account"},
	{"projects", "/account/projects"},
	{"sessions", "/account/sessions"},
	{"mcp-access", "/account/mcp-access"},
	{"audit", "/account/audit"},
	{"projects-none", "/account/projects?q=nothing"},
	{"project", "/account/projects/{app}"},
	{"project-sessions", "/account/projects/{app}/sessions"},
	{"assistant", "/account/projects/{app}/assistant"},
	{"credentials", "/account/projects/{app}/credentials"},
	{"analytics", "/account/projects/{app}/analytics"},
	{"connection-page", "/account/projects/{app}/connection-page"},
	{"gateway", "/account/projects/{app}/gateway"},
	{"play-keys-remove", "/account/projects/{app}/gateway/attestation/keys/remove"},
	{"credit", "/account/credit"},
	{"mcp-access-all", "/account/mcp-access/all?level=off"},
	{"audit-filtered", "/account/audit?kind=changes&who=agent"},
	{"audit-none", "/account/audit?to=2020-01-01"},
	{"settings", "/account/settings"},
	{"settings-delete", "/account/settings/delete"},
	{"privacy", "/privacy"},
	{"docs", "/docs"},
	{"docs-managed-gateway", "/docs/managed-gateway"},
	{"docs-operating-gateway", "/docs/operating-gateway"},
	{"docs-display", "/docs/display"},
	{"docs-search", "/docs/search?q=scroll+a+list"},
	{"docs-nothing", "/docs/search?q=qqqq"},
	{"not-found", "/account/projects/com.example.nobody"},
}

// visitorPages lists the pages for visitors who are not signed in.
var visitorPages = []struct{ name, path string }{
	{"home-visitor", "/"}, {"signin", "/signin"}, {"signup", "/signup"}, {"forgot", "/forgot"}, {"goodbye", "/goodbye"},
	{"signup-sent", "/signup/sent"}, {"signup-confirm", "/signup/confirm?token=sml_any"},
	{"reset", "/reset?token=sml_any"},
}

// axe-core finds no violations on any page, in light or dark mode. Each page is small and loads only from its own
// origin.
func TestPages(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "service.db")
	b := startBackend(t, database, "SERVICE_BACKEND_GATEWAY_CATALOGUE="+gatewayOfPages(t))
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url, "SERVICE_NO_AUTO_OPEN=1")
	a := startAgent(w, "modern", false)
	axe := axeSource(t)
	browser := newBrowser(t)
	run(t, browser, "open a page with violations",
		chromedp.Navigate(`data:text/html,<title>x</title><main><input></main>`))
	if len(axeViolations(t, browser, axe)) == 0 {
		t.Fatal("axe finds no violation on a page that has one")
	}
	for _, p := range visitorPages {
		checkPage(t, browser, axe, p.name, b.url+p.path, maxPage)
	}
	asked := a.call("listProjects", map[string]any{})
	checkPage(t, browser, axe, "activate", asked.str(t, "verificationUrl"), maxPage)
	approve(t, browser, asked.str(t, "verificationUrl"), asked.str(t, "userCode"), "ada@example.org")
	checkPage(t, browser, axe, "approved", "", maxPage)
	checkPage(t, browser, axe, "activate-signed-in", issueCode(t, b).VerificationURL, maxPage)
	a.call("completeAuthLink", map[string]any{"deviceCode": asked.str(t, "deviceCode")})
	for _, p := range accountPages[:emptyPages] {
		checkPage(t, browser, axe, p.name+"-empty", b.url+p.path, maxPage)
	}
	session := a.call("createSimulatorSession", map[string]any{"project": app, "openBrowser": false})
	for i := range accountTools {
		callRecord(t, a, i, app)
	}
	for _, p := range accountPages {
		if p.name == "gateway" || p.name == "credit" {
			checkPage(t, browser, axe, p.name+"-empty", b.url+strings.ReplaceAll(p.path, "{app}", app), maxPage)
		}
	}
	sendAnalytics(t, b, w)
	callModels(t, b, keptKey(t, w), database)
	addInstalls(t, database)
	addMemories(t, database)
	for _, p := range accountPages {
		checkPage(t, browser, axe, p.name, b.url+strings.ReplaceAll(p.path, "{app}", app), maxPage)
	}
	checkStates(t, browser, axe, b.url, b.url+"/account/projects/"+app)
	paste := a.call("setCredential", map[string]any{"project": app, "provider": "openai", "openBrowser": false})
	checkPage(t, browser, axe, "paste", paste.str(t, "url"), maxPage)
	page := a.call("getConnectionPageConfig", map[string]any{"project": app})
	checkPage(t, browser, axe, "connect", page.str(t, "pageUrl"), maxPage)
	checkPage(t, browser, axe, "docs-gallery", b.url+"/docs/gallery", 8*maxPage) // pictures of all models
	checkPage(t, browser, axe, "simulator-page", session.str(t, "sessionUrl"), maxSimulator)
}

// checkPage opens a page, or uses the open one, and checks it in both colour schemes, on a phone, at a zoom of 200 %,
// and with reduced motion.
func checkPage(t *testing.T, browser context.Context, axe, name, url string, most int) {
	t.Helper()
	if url != "" {
		run(t, browser, "open "+name, chromedp.Navigate(url), until(`document.readyState === "complete"`))
	}
	for _, look := range []struct {
		name, scheme  string
		width, height int64
		without       []string
	}{{"", "light", 1200, 900, nil}, {"-dark", "dark", 1200, 900, nil}, {"-phone", "light", 390, 844, nil},
		{"-zoom", "light", 600, 450, slowRules}} {
		emulate(t, browser, look.scheme, look.width, look.height)
		for _, v := range axeViolations(t, browser, axe, look.without...) {
			t.Errorf("axe violation on %s%s: %s", name, look.name, v)
		}
		if wide := evaluate[bool](t, browser, `document.documentElement.scrollWidth > innerWidth + 1`); wide {
			t.Errorf("%s%s is wider than the screen", name, look.name)
		}
		picture(t, browser, "page-"+name+look.name)
	}
	emulate(t, browser, "light", 1200, 900)
	var loaded struct {
		Bytes   int
		Foreign []string
	}
	text := evaluate[string](t, browser, `JSON.stringify((() => {
		const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
		return {bytes: all.reduce((n, e) => n + (e.decodedBodySize || 0), 0), foreign: all.map(e => e.name).filter(n => new URL(n).origin !== location.origin && !n.startsWith("data:"))};
	})())`)
	if err := json.Unmarshal([]byte(text), &loaded); err != nil {
		t.Fatal(err)
	}
	if loaded.Bytes == 0 || loaded.Bytes > most || len(loaded.Foreign) > 0 {
		t.Errorf("%s loads %d bytes, want at most %d; and %v from other origins, want none", name, loaded.Bytes, most,
			loaded.Foreign)
	}
	t.Logf("%s: %d bytes", name, loaded.Bytes)
}

// gatewayOfPages starts a fake provider and returns a catalogue whose models are available, available with a project's
// own key, or not offered.
func gatewayOfPages(t *testing.T) (catalogue string) {
	t.Helper()
	provider := llmtest.Start()
	t.Cleanup(provider.Close)
	return withOwnKeys(t, provider.URL, llmtest.Good, llmtest.OneByte, llmtest.Status500)
}

// callModels makes calls that use most of a cap, are refused, and fail. Then an operator adds credit.
func callModels(t *testing.T, b *remoteBackend, key, database string) {
	t.Helper()
	ask := func(path, model string, status int) {
		t.Helper()
		if got, text := callModel(t, b.url+path, key, model, "Hello", ""); got != status {
			t.Errorf("call %s with model %s: got status %d, want another status: %s", path, model, got, text)
		}
	}
	for range 3 {
		ask("/v1/chat/completions", llmtest.Good, http.StatusOK)
		ask("/v1/chat/completions", "assistant", http.StatusOK)
		ask("/v1/messages", "msg-"+llmtest.Good, http.StatusOK)
		ask("/v1/chat/completions", llmtest.OneByte, http.StatusOK)
	}
	ask("/v1/chat/completions", llmtest.Status500, http.StatusServiceUnavailable)
	ask("/v1/chat/completions", "unpriced", http.StatusNotFound)
	ask("/v1/chat/completions", "resp-"+llmtest.Good, http.StatusBadRequest)
	// Nine tenths of the cap are spent, so no other call fits.
	execSQLite(t, database, `UPDATE gateway_settings SET day_cap =
		(SELECT MAX(spent) * 10 / 9 FROM credit_spending) WHERE app_id = '`+app+`'`)
	ask("/v1/chat/completions", llmtest.Good, http.StatusPaymentRequired)
	b.admin("credit", "ada@example.org", "--add", "25.00", "--reference", "INV-2041", "--note", "first order")
}

// addInstalls adds 25 installs, of every platform and state, and refusals to the project.
func addInstalls(t *testing.T, database string) {
	t.Helper()
	now := time.Now().UnixMilli()
	execDatabase(t, database, `WITH RECURSIVE n (value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM n WHERE value < 24)
		INSERT INTO attest_installs (id, account_id, app_id, platform, key_hash, public_key, app,
			counter, environment, project_key, created_at, attested_at, expires_at, revoked_at)
		SELECT printf('%08x-1b2c-4d3e-8f40-5a6b7c8d9e0f', 16777216 * (value % 3 + 1) + value), account_id, app_id,
			CASE value % 3 WHEN 0 THEN 'apple' WHEN 1 THEN 'google' ELSE 'development' END, value, '',
			CASE value % 3 WHEN 0 THEN 'ABCDE12345.com.example.a.bundle.with.a.long.name' WHEN 1 THEN 'com.example.app'
				ELSE '' END,
			0, CASE value % 3 WHEN 2 THEN 'development' ELSE 'production' END,
			(SELECT MIN(id) FROM project_keys k WHERE k.app_id = p.app_id AND k.revoked_at IS NULL), $2,
			$2 - 600000 * value, $2 + 3600000 - 600000 * value, CASE value % 5 WHEN 4 THEN $2 END
		FROM projects p, n WHERE app_id = $1`, app, now)
	execDatabase(t, database, `INSERT INTO attest_refusals (account_id, app_id, day, platform, reason, count, last_at)
		SELECT account_id, app_id, $2, 'google', 'unrecognized_app', 1234, $3 FROM projects WHERE app_id = $1
		UNION ALL SELECT account_id, app_id, $2, 'apple', 'unknown_challenge', 3, $3 FROM projects WHERE app_id = $1`,
		app, time.Now().UTC().Format(time.DateOnly), now)
}

// addMemories adds what the project's app remembers about two users.
func addMemories(t *testing.T, database string) {
	t.Helper()
	now := time.Now().UnixMilli()
	execDatabase(t, database, `INSERT INTO memories (account_id, app_id, user_hash, sealed_for, sealed, wrapped, key_id,
			generation, created_at, updated_at, used_at, expires_at)
		SELECT account_id, app_id, hash, app_id, 'x', 'x', '', 0, $2, $2, $2, $2 + 2592000000
		FROM projects, (SELECT '4f1c0d9be2a7' AS hash UNION ALL SELECT '90ab12cd34ef') WHERE app_id = $1`, app, now)
}

func axeSource(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Clean(nodeTool(t, "axe-core/axe.min.js")))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// slowRules lists the rules of axe-core that take most of its time, because they compare the colours of all texts.
var slowRules = []string{"color-contrast"}

// axeViolations runs axe-core with the rules of WCAG 2.2 A and AA and its best practices, except the rules in
// without. In dark mode it runs only the rules about colours, because the document is the same as in light mode.
func axeViolations(t *testing.T, browser context.Context, axe string, without ...string) []string {
	t.Helper()
	names, err := json.Marshal(append([]string{}, without...))
	if err != nil {
		t.Fatal(err)
	}
	if !evaluate[bool](t, browser, `"axe" in window`) {
		evaluate[bool](t, browser, axe+`;true`)
	}
	run(t, browser, "run axe", chromedp.Evaluate[chromedp.Void](`{
		window.axeDone = null;
		const rules = Object.fromEntries(`+string(names)+`.map((name) => [name, {enabled: false}]));
		const options = {iframes: false, resultTypes: ["violations"], rules};
		if (matchMedia("(prefers-color-scheme: dark)").matches) options.runOnly = ["color-contrast", "link-in-text-block"];
		axe.run(document, options).then(r => { window.axeDone = JSON.stringify(r.violations.map(v => v.id + ": " + v.help + " -- " + v.nodes.slice(0, 3).map(n => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join(" | "))) }, e => { window.axeDone = JSON.stringify(["axe failed: " + e]) });
	}`), until(`window.axeDone !== null`))
	var found []string
	if err := json.Unmarshal([]byte(evaluate[string](t, browser, `window.axeDone`)), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// emulate shows the page in a colour scheme and size. In dark mode it also requests reduced motion.
func emulate(t *testing.T, browser context.Context, scheme string, width, height int64) {
	t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
	if scheme == "dark" {
		features = append(features, &emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
	}
	run(t, browser, "resize", chromedp.EmulateViewport(width, height),
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
			return err
		}))
}

func evaluate[T any](t *testing.T, browser context.Context, js string) T {
	t.Helper()
	v, err := chromium.Run(browser, chromedp.Evaluate[T](js))
	if err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	return v
}

// keptKey returns the project key that generateConnectionModule wrote to its ignored file.
func keptKey(t *testing.T, w *world) string {
	t.Helper()
	var key string
	err := filepath.WalkDir(w.project, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if found := projectKey.Find(data); found != nil {
			key = string(found)
		}
		return err
	})
	if err != nil || key == "" {
		t.Fatalf("no project key in the ignored file: %v", err)
	}
	return key
}

// sendAnalytics sends events as a shipped app would, and returns the response.
func sendAnalytics(t *testing.T, b *remoteBackend, w *world) map[string]any {
	t.Helper()
	var events []map[string]any
	for i := range 200 {
		event := map[string]any{"id": fmt.Sprint("e-", i), "type": "session",
			"at":         time.Now().Add(-time.Duration(i) * 15 * time.Minute).UnixMilli(),
			"installId":  fmt.Sprintf("install-%04d", i%17),
			"appVersion": []string{"1.0.0", "1.1.0"}[i%2], "platform": "web", "deviceModel": "rayban_display"}
		switch i % 5 {
		case 1, 2:
			event["type"], event["name"] = "event", "photo.taken"
		case 3:
			event["type"], event["name"] = "error", "camera.denied"
		}
		events = append(events, event)
	}
	body, err := json.Marshal(map[string]any{"events": events})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, b.url+"/api/analytics", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+keptKey(t, w))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("send analytics: got status %d, %v (error %v), want 200", resp.StatusCode, answer, err)
	}
	return answer
}
