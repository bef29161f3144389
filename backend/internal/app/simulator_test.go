package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/test/chromium"
)

const testPassword = "correct horse battery"

// backendUnderTest is a complete backend on SQLite with one linked account.
type backendUnderTest struct {
	t     *testing.T
	url   string
	token string
	// database is the directory of the backend's data.
	database string
	// restart stops the backend and starts it again with the same data at the same address.
	restart func()
}

func startBackend(t *testing.T) *backendUnderTest {
	t.Helper()
	return startBackendWith(t, func(*config.Config) {}, slog.New(slog.DiscardHandler), gateway.Limits{})
}

// startBackendWith starts a backend with changed settings and the given logger.
func startBackendWith(
	t *testing.T, change func(*config.Config), log *slog.Logger, limits gateway.Limits,
) *backendUnderTest {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	b := &backendUnderTest{t: t, url: fmt.Sprintf("http://localhost:%d", port)}
	c := config.Config{
		BaseURL: b.url, SiteURL: b.url, Database: filepath.Join(t.TempDir(), "service.db"),
		HMACKey: bytes.Repeat([]byte("k"), 32),
		CodeTTL: 10 * time.Minute, PollInterval: 5 * time.Second, Grace: 30 * time.Second, UnusedAfter: time.Minute,
		CodesPerMinute: 60, DrainTimeout: 2 * time.Second,
	}
	change(&c)
	b.database = c.Database
	var stop func()
	serve := func(l net.Listener) *App {
		a, err := New(t.Context(), Options{Config: c, Embedded: true, InstanceID: "test", Log: log, GatewayLimits: limits})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- a.Serve(ctx, l) }()
		stop = func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Serve returned %v", err)
			}
		}
		return a
	}
	a := serve(l)
	t.Cleanup(func() { stop() })
	b.restart = func() {
		stop()
		again, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		serve(again)
	}
	b.token = linkAccount(t, a, secret.NewHasher(c.HMACKey))
	return b
}

func linkAccount(t *testing.T, a *App, hash secret.Hasher) string {
	t.Helper()
	ctx := t.Context()
	accounts := account.New(account.Options{Store: account.NewStore(a.db), Hasher: hash,
		Log: slog.New(slog.DiscardHandler)})
	ada, err := accounts.SignUp(ctx, "ada@example.org",
		testPassword)
	if err != nil {
		t.Fatal(err)
	}
	code, err := a.links.Start(ctx, link.Requester{Host: "maple"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.links.Approve(ctx, code.UserCode, ada.ID); err != nil {
		t.Fatal(err)
	}
	poll, err := a.links.Poll(ctx, code.DeviceCode)
	if err != nil || poll.Token == nil {
		t.Fatalf("poll: got error %v, want a token", err)
	}
	return poll.Token.AuthToken
}

// call sends one JSON request as the linked account.
func (b *backendUnderTest) call(method, path, body string, into any) int {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+b.token)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	if into == nil {
		return res.StatusCode
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode
}

// startApp runs the example app in the session, in its own process. stop interrupts it as Ctrl-C would.
func (b *backendUnderTest) startApp(s backendapi.Session) (stop func()) {
	b.t.Helper()
	var minted backendapi.SessionSecret
	if status := b.call("POST", backendapi.PathSessions+"/"+s.SessionID+"/secrets", "",
		&minted); status != http.StatusCreated {
		b.t.Fatalf("create app secret: got status %d, want 201", status)
	}
	dir := b.t.TempDir()
	binary, token := filepath.Join(dir, "hello-glasses"), filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(minted.AppSecret+"\n"), 0o600); err != nil {
		b.t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", binary, "../../../examples/apps/hello-glasses")
	if out, err := build.CombinedOutput(); err != nil {
		b.t.Fatalf("build the example app: %v\n%s", err, out)
	}
	var out bytes.Buffer
	app := exec.Command(binary, "-endpoint", s.AppEndpoint, "-token-file", token)
	app.Stdout, app.Stderr = &out, &out
	if err := app.Start(); err != nil {
		b.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = app.Process.Signal(os.Interrupt)
		if err := app.Wait(); err != nil || !strings.Contains(out.String(), "bye") {
			b.t.Errorf("example app: got error %v, want a clean exit with bye:\n%s", err, out.String())
		}
	})
	b.t.Cleanup(stop)
	return stop
}

func newBrowser(t *testing.T) context.Context {
	t.Helper()
	if _, err := os.Stat("../web/wasm/simulator.wasm.gz"); err != nil && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: the simulator's program is not built (make wasm), the simulator page was not tested")
	}
	return chromium.Open(t, chromedp.WindowSize(1280, 1100))
}

// The page draws the content that an app shows, and sends taps by mouse and keyboard. After a restart of the backend,
// it recovers without losing or duplicating a row.
func TestSimulatorPage_Lives(t *testing.T) {
	b := startBackend(t)
	browser := newBrowser(t)
	var s backendapi.Session
	if status := b.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`,
		&s); status != http.StatusCreated {
		t.Fatalf("create session: got status %d, want 201", status)
	}
	run(t, browser, chromedp.Navigate(s.SessionURL), chromium.Type("#email", "ada@example.org"),
		chromium.Type("#password", testPassword), chromedp.Submit("#password"))
	see(t, browser, "#socket", "Connected")
	see(t, browser, "#attach", "No app is connected")
	shot(t, browser, "empty")

	stopApp := b.startApp(s)
	see(t, browser, "#display", "Hello, glasses")
	see(t, browser, "#peers", "Hello Glasses")
	run(t, browser, chromedp.Click("#panel"))
	see(t, browser, "#display", "Taps: 1")
	run(t, browser, chromedp.Focus("#panel"), chromedp.KeyEvent(" "))
	see(t, browser, "#display", "Taps: 2")
	see(t, browser, "#log", "display.show")
	shot(t, browser, "running")

	b.restart()
	see(t, browser, "#socket", "Connected")
	see(t, browser, "#peers", "Hello Glasses")
	see(t, browser, "#display", "Taps: 2")
	run(t, browser, chromedp.Click("#panel"))
	see(t, browser, "#display", "Taps: 3")
	checkRows(t, browser)
	stopApp()
	see(t, browser, "#attach", "No app is connected")

	var closed backendapi.Session
	if status := b.call("DELETE", backendapi.PathSessions+"/"+s.SessionID, "", &closed); status != http.StatusOK ||
		closed.State != "closed" {
		t.Fatalf("close session: got status %d, state %s, want closed", status, closed.State)
	}
	see(t, browser, "#socket", "Session closed")
	shot(t, browser, "closed")
}

func checkRows(t *testing.T, browser context.Context) {
	t.Helper()
	seqs, err := chromium.Run(browser,
		chromedp.Evaluate[[]string](`[...document.querySelectorAll("#log > li")].map(li => li.dataset.seq)`))
	if err != nil || len(seqs) == 0 {
		t.Fatalf("read the log: got rows %v (error %v), want at least one", seqs, err)
	}
	for i, seq := range seqs {
		if seq != fmt.Sprint(i+1) {
			t.Fatalf("got rows %v on the page, want each number from 1 once and in order", seqs)
		}
	}
}

func run(t *testing.T, ctx context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	for _, a := range actions {
		if _, err := chromium.Run(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
}

// see waits until the page element matching selector shows the text.
func see(t *testing.T, ctx context.Context, selector, text string) {
	t.Helper()
	expr := fmt.Sprintf(`document.querySelector(%q)?.innerText.includes(%q) ?? false`, selector, text)
	if chromium.Eventually(ctx, expr) {
		return
	}
	body, _ := chromium.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
	t.Fatalf("%s never showed %q:\n%s", selector, text, body)
}

// shot saves a screenshot if SCREENSHOTS is set to a directory.
func shot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"desktop", 1280, 1100}, {"phone", 390, 1500}} {
		run(t, ctx, chromedp.EmulateViewport(size.width, size.height))
		png, err := chromium.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+"-"+size.name+".png"), png, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, ctx, chromedp.EmulateViewport(1280, 1100))
}
