package web

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func newBrowser(t *testing.T, flags []string, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	if _, err := programFiles.ReadFile("wasm/" + programName + ".gz"); err != nil {
		missing(t, "the simulator's program (make wasm)")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		missing(t, "chromium")
	}
	opts := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	opts = append(opts, chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.WindowSize(1280, 800))
	for _, f := range flags {
		name, value, _ := strings.Cut(f, "=")
		if value == "" {
			opts = append(opts, chromedp.Flag(name, true))
			continue
		}
		opts = append(opts, chromedp.Flag(name, value))
	}
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), append(opts, more...)...)
	ctx, stop := chromedp.NewContext(alloc)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(func() { cancel(); stop(); stopAlloc() })
	// The browser runs as long as the context of its first call.
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return ctx
}

func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("missing: %s", what)
	}
	t.Skipf("SKIPPED, missing: %s", what)
}

func (s *pageTest) do(steps ...chromedp.Action[chromedp.Void]) {
	s.t.Helper()
	if err := chromedp.Do(s.ctx, steps...); err != nil {
		s.t.Fatalf("%v; the page shows:\n%s", err, s.text("body"))
	}
}

// see waits until a JavaScript condition is true on the page.
func (s *pageTest) see(js string) {
	s.t.Helper()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		// Evaluation fails during a navigation.
		if yes, err := chromedp.Run(s.ctx, chromedp.Evaluate[bool]("Boolean("+js+")")); err == nil && yes {
			return
		}
	}
	s.t.Fatalf("the condition never became true: %s; the page shows:\n%s", js, s.text("body"))
}

func eval[T any](s *pageTest, js string) T {
	s.t.Helper()
	v, err := chromedp.Run(s.ctx, chromedp.Evaluate[T](js))
	if err != nil {
		s.t.Fatalf("%s: %v", js, err)
	}
	return v
}

func (s *pageTest) text(selector string) string {
	text, _ := chromedp.Run(s.ctx, chromedp.Evaluate[string](fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`,
		selector)))
	return text
}

// withoutScripts loads the next pages without running their scripts.
func (s *pageTest) withoutScripts() {
	s.t.Helper()
	s.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
}

// picture saves a screenshot for review if the environment variable SCREENSHOTS names a directory.
func (s *pageTest) picture(name string) {
	s.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"laptop", 1280, 800}, {"phone", 390, 844}} {
		s.do(chromedp.EmulateViewport(size.width, size.height))
		for kind, shot := range map[string]chromedp.Action[[]byte]{"": chromedp.CaptureScreenshot(),
			"-full": chromedp.FullScreenshot(100)} {
			png, err := chromedp.Run(s.ctx, shot)
			if err != nil {
				s.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name+"-"+size.name+kind+".png"), png, 0o600); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	s.do(chromedp.EmulateViewport(1280, 800))
}
