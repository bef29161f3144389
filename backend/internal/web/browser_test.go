package web

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// newBrowser returns a browser without cookies. Tests share one process, in which each has a browser context of its
// own, because starting Chromium takes longer than most tests. A test that needs flags or options starts a process of
// its own.
func newBrowser(t *testing.T, flags []string, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	if _, err := programFiles.ReadFile("wasm/" + programName + ".gz"); err != nil {
		missing(t, "the simulator's program (make wasm)")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		missing(t, "chromium")
	}
	var ctx context.Context
	var stop context.CancelFunc
	if len(flags)+len(more) > 0 {
		ctx, stop, err = startChromium(path, t.TempDir(), flags, more...)
		if err != nil {
			t.Fatal(err)
		}
	} else {
		shared, err := sharedChromium()
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop = chromedp.NewContext(shared, chromedp.WithNewBrowserContext(), chromedp.WithNewWindow(true))
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(func() { cancel(); stop() })
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("open a page in chromium: %v", err)
	}
	return ctx
}

// sharedChromium starts the process of most tests. TestMain ends it.
var sharedChromium = sync.OnceValues(func() (context.Context, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "chromium-*")
	if err != nil {
		return nil, err
	}
	ctx, _, err := startChromium(path, dir, nil)
	return ctx, err
})

// startChromium starts a process that runs until stop is called.
func startChromium(
	path, dir string, flags []string, more ...chromedp.ExecAllocatorOption,
) (ctx context.Context, stop context.CancelFunc, err error) {
	opts := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	opts = append(opts, chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(dir),
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
	ctx, stopTab := chromedp.NewContext(alloc)
	stop = func() { stopTab(); stopAlloc() }
	// The browser runs as long as the context of its first call.
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		stop()
		return nil, nil, fmt.Errorf("start chromium: %w", err)
	}
	return ctx, stop, nil
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
