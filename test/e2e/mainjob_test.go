//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/test/chromium"
)

const password = "correct horse battery"

// The main workflow works with both backends and both protocol generations of MCP.
func TestMainJob(t *testing.T) {
	t.Parallel()
	backends := map[string]func(t *testing.T) *world{
		"embedded": func(t *testing.T) *world { return newWorld(t, "") },
		"postgres": func(t *testing.T) *world {
			b := startBackend(t, newPostgres(t))
			return newWorld(t, "", "SERVICE_BACKEND_URL="+b.url)
		},
	}
	pairs := []string{"embedded/modern", "postgres/legacy", "embedded/legacy", "postgres/modern"}
	for _, pair := range pairs[:full(len(pairs), 2)] {
		backend, protocol, _ := strings.Cut(pair, "/")
		t.Run(pair, func(t *testing.T) {
			t.Parallel()
			mainJob(t, backends[backend](t), protocol)
		})
	}
}

func mainJob(t *testing.T, w *world, protocol string) {
	a := startAgent(w, protocol, false)

	asked := a.call("createSimulatorSession", map[string]any{"project": "com.example.hello"})
	if asked.IsError || asked.str(t, "status") != "auth_required" {
		t.Fatalf("unlinked: got %v, want auth_required", asked.Structured)
	}
	code, url := asked.str(t, "userCode"), asked.str(t, "verificationUrl")
	if !strings.Contains(url, "/activate?code="+code) || asked.str(t, "fixHint") == "" {
		t.Fatalf("unlinked: got %v, want a URL with the code and a fixHint", asked.Structured)
	}
	must(t, "the browser opener was started", func() bool {
		return len(w.openedURLs()) == 1 && w.openedURLs()[0] == url
	})

	browser := newBrowser(t)
	approve(t, browser, url, code, "ada@example.org")
	linked := a.call("completeAuthLink", map[string]any{"deviceCode": asked.str(t, "deviceCode")})
	checkLinked(t, w, linked)

	session := a.call("createSimulatorSession", map[string]any{"project": "com.example.hello"})
	if session.str(t, "status") != "resumed" {
		t.Fatalf("after linking: got %v, want a resumed session", session.Structured)
	}
	retried, _ := linked.Structured["retried"].(map[string]any)
	if retried["sessionId"] != session.Structured["sessionId"] ||
		retried["sessionUrl"] != session.Structured["sessionUrl"] {
		t.Errorf("the retried call returned session %v, the next call %v, want the same session", retried, session.Structured)
	}
	secretStaysPut(t, w, session)

	openSimulator(t, browser, session.str(t, "sessionUrl"))
	runExampleApp(t, w, session)
	waitForText(t, browser, "#panel", "Hello")
	tapPanel(t, browser)
	waitForText(t, browser, "#panel", "1")
	picture(t, browser, "simulator")

	for _, want := range []string{"display.show", "input"} { // rows are written shortly after the frames are sent
		must(t, "the event log has "+want, func() bool {
			return strings.Contains(eventTypes(t, a.call("getEventLog",
				map[string]any{"sessionId": session.str(t, "sessionId")})), want)
		})
	}
	closed := a.call("closeSession", map[string]any{"sessionId": session.str(t, "sessionId")})
	if closed.IsError || closed.str(t, "summary") == "" {
		t.Errorf("closeSession: got %v, want a summary", closed.Structured)
	}
}

// checkLinked checks every field of a successful completeAuthLink result.
func checkLinked(t *testing.T, w *world, r toolResult) {
	t.Helper()
	if r.IsError || r.Structured["linked"] != true || r.Structured["tier"] != "free_account" {
		t.Fatalf("completeAuthLink: got %v, want a linked free account", r.Structured)
	}
	r.str(t, "accountId")
	if _, err := time.Parse(time.RFC3339, r.str(t, "linkedAt")); err != nil {
		t.Error(err)
	}
	if at, there := r.Structured["expiresAt"]; !there || at != nil {
		t.Errorf("expiresAt is %v, want null", at)
	}
	file := filepath.Join(w.dir, "auth.json")
	want := map[string]any{"path": file, "written": true, "error": nil}
	if diff := cmp.Diff(want, r.Structured["authTokenFile"]); diff != "" {
		t.Errorf("unexpected authTokenFile: %s", diff)
	}
	if n, ok := r.Structured["pollCount"].(float64); !ok || n < 1 {
		t.Errorf("pollCount is %v, want 1 or more", r.Structured["pollCount"])
	}
	if !strings.Contains(r.str(t, "summary"), "createSimulatorSession") {
		t.Errorf("summary is %q, want createSimulatorSession as the next step", r.Structured["summary"])
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("auth.json: got %v (error %v), want mode 0600", info, err)
	}
	var stored map[string]any
	if !readJSON(file, &stored) {
		t.Fatal("failed to parse auth.json")
	}
	for _, field := range []string{"authToken", "accountId", "linkedAt", "expiresAt", "scope", "backendUrl"} {
		if _, there := stored[field]; !there {
			t.Errorf("auth.json lacks the field %s", field)
		}
	}
}

// secretStaysPut checks that the session secret is in a file of mode 0600 and is not visible to the agent anywhere.
func secretStaysPut(t *testing.T, w *world, session toolResult) {
	t.Helper()
	file := session.str(t, "appTokenFile")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%s: got %v (error %v), want mode 0600", file, info, err)
	}
	secret, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	seen, _ := json.Marshal(session)
	if strings.Contains(string(seen), strings.TrimSpace(string(secret))) || strings.Contains(string(seen), "sst_") {
		t.Error("the tool result contains the session secret")
	}
}

func runExampleApp(t *testing.T, w *world, session toolResult) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "hello-glasses"), "-endpoint", session.str(t, "appEndpoint"),
		"-token-file", session.str(t, "appTokenFile"))
	cmd.Env, cmd.Stderr = w.env, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
}

func eventTypes(t *testing.T, rows toolResult) string {
	t.Helper()
	events, ok := rows.Structured["events"].([]any)
	if !ok {
		t.Fatalf("getEventLog: got %v, want a list of events", rows.Structured)
	}
	var types []string
	for _, e := range events {
		types = append(types, e.(map[string]any)["type"].(string))
	}
	return strings.Join(types, " ")
}

// approve acts as a new user on the activation page: it compares the code, signs up and approves it.
func approve(t *testing.T, browser context.Context, url, code, email string) {
	t.Helper()
	run(t, browser, "open the activation page", chromedp.Navigate(url), chromedp.WaitVisible("#user-code"))
	if shown := textOf(t, browser, "#user-code"); strings.TrimSpace(shown) != code {
		t.Fatalf("the page shows the code %q, want the agent's code %q", shown, code)
	}
	picture(t, browser, "activate")
	run(t, browser, "sign up",
		chromium.Type("input[name=email]", email),
		chromium.Type("input[name=password]", password),
		chromedp.Click("input[name=accept]"),
		chromedp.Submit("input[name=email]"),
		chromedp.WaitVisible("#approve"))
	picture(t, browser, "approve")
	run(t, browser, "approve", chromedp.Click("#approve"), until(`location.pathname === "/activate/approved"`))
}

func openSimulator(t *testing.T, browser context.Context, url string) {
	t.Helper()
	run(t, browser, "open the simulator", chromedp.Navigate(url), chromedp.WaitVisible("#panel"),
		until(`document.querySelector("#socket").dataset.state === "up"`))
}

func tapPanel(t *testing.T, browser context.Context) {
	t.Helper()
	run(t, browser, "tap the panel", chromedp.Click("#panel"))
}

func waitForText(t *testing.T, browser context.Context, selector, text string) {
	t.Helper()
	run(t, browser, "see "+text, until(`document.querySelector(`+quote(selector)+`)?.textContent.includes(`+quote(text)+`)`))
}

// until waits for a JavaScript condition on the page, even across navigation.
func until(js string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		holds := func() bool {
			yes, err := chromedp.Evaluate[bool](`Boolean(`+js+`)`)(ctx, target)
			return err == nil && yes
		}
		if !eventually(chromium.StepLimit, func() bool { return holds() || ctx.Err() != nil }) || ctx.Err() != nil {
			return chromedp.Void{}, fmt.Errorf("not true within %s: %s", chromium.StepLimit, js)
		}
		return chromedp.Void{}, ctx.Err()
	}
}

// picture saves a screenshot for README and reviews, for make screenshots.
func picture(t *testing.T, browser context.Context, name string) {
	t.Helper()
	dir := os.Getenv("SERVICE_SCREENSHOTS")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(browser, chromium.StepLimit)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		t.Errorf("screenshot of %s: %v", name, err)
	}
}

func run(t *testing.T, browser context.Context, what string, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromium.Do(browser, steps...); err != nil {
		look, stop := context.WithTimeout(browser, 5*time.Second)
		defer stop()
		url, _ := chromedp.Run(look, chromedp.Location())
		text, _ := chromedp.Run(look, chromedp.Text("body"))
		t.Fatalf("%s: %v\nat %s\n%s", what, err, url, text)
	}
}

func textOf(t *testing.T, browser context.Context, selector string) string {
	t.Helper()
	text, err := chromium.Run(browser, chromedp.Text(selector))
	if err != nil {
		t.Fatalf("read the text of %s: %v", selector, err)
	}
	return text
}

func quote(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}
