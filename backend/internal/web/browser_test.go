package web

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/packaging/chromium"
)

// newBrowser returns a browser without cookies. Tests share one process, in which each has a browser context of its
// own, because starting Chromium takes longer than most tests. A test that needs flags or options starts a process of
// its own.
func newBrowser(t *testing.T, flags []string, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	if _, err := programFiles.ReadFile("wasm/" + programName + ".gz"); err != nil {
		missing(t, "the simulator's program (make wasm)")
	}
	chromium.Require(t)
	if len(flags)+len(more) > 0 {
		return chromium.Open(t, append(options(flags), more...)...)
	}
	shared, err := sharedChromium()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := chromedp.NewContext(shared, chromedp.WithNewBrowserContext(), chromedp.WithNewWindow(true))
	ctx, cancel := context.WithTimeout(ctx, chromium.TestLimit)
	t.Cleanup(func() { cancel(); stop() })
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("open a page in chromium: %v", err)
	}
	return ctx
}

// sharedChromium starts the process of most tests. TestMain ends it.
var sharedChromium = sync.OnceValues(func() (context.Context, error) {
	ctx, _, err := chromium.Start(options(nil)...)
	return ctx, err
})

// options returns the options for flags, each of which is a name or name=value.
func options(flags []string) []chromedp.ExecAllocatorOption {
	opts := []chromedp.ExecAllocatorOption{chromedp.WindowSize(1280, 800)}
	for _, f := range flags {
		name, value, _ := strings.Cut(f, "=")
		if value == "" {
			opts = append(opts, chromedp.Flag(name, true))
			continue
		}
		opts = append(opts, chromedp.Flag(name, value))
	}
	return opts
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
	if err := chromium.Do(s.ctx, steps...); err != nil {
		s.t.Fatalf("%v; the page shows:\n%s", err, s.text("body"))
	}
}

// see waits until a JavaScript condition is true on the page.
func (s *pageTest) see(js string) {
	s.t.Helper()
	if chromium.Eventually(s.ctx, js) {
		return
	}
	s.t.Fatalf("the condition never became true: %s; the page shows:\n%s", js, s.text("body"))
}

func eval[T any](s *pageTest, js string) T {
	s.t.Helper()
	v, err := chromium.Run(s.ctx, chromedp.Evaluate[T](js))
	if err != nil {
		s.t.Fatalf("%s: %v", js, err)
	}
	return v
}

func (s *pageTest) text(selector string) string {
	text, _ := chromium.Run(s.ctx, chromedp.Evaluate[string](fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`,
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
			png, err := chromium.Run(s.ctx, shot)
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
