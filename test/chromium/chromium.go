// Package chromium starts headless Chromium processes for tests, optionally with emulated Bluetooth. All test binaries
// share slots, so that packages tested at the same time do not start more browsers than the machine has cores.
package chromium

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/gofrs/flock"

	"github.com/service-dev/service/test/reaper"
)

// StepLimit is the maximum time of one step in a page, such as a navigation or a script, even on a busy machine.
const StepLimit = 2 * time.Minute

// startLimit only ends a browser that does not start.
const startLimit = 3 * time.Minute

// TestLimit only ends hanging tests. It is far longer than any test takes on a busy machine.
const TestLimit = 20 * time.Minute

// Open starts a Chromium with its own profile, waits until it can open pages, and returns its first tab. The process
// ends with the test.
func Open(t *testing.T, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	Require(t)
	tab, stop, err := Start(more...)
	if err != nil {
		t.Fatal(err)
	}
	tab, cancel := context.WithTimeout(tab, TestLimit)
	t.Cleanup(func() { cancel(); stop() })
	return tab
}

// Tab opens another tab in the same browser. It is closed when the test ends, at the latest.
func Tab(other context.Context, t *testing.T, options ...chromedp.ContextOption) (tab context.Context, closeTab func()) {
	t.Helper()
	tab, closeTab = chromedp.NewContext(other, options...)
	t.Cleanup(closeTab)
	// The tab stays open as long as the context of the first call.
	if err := chromedp.Do(tab, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	return tab, closeTab
}

// Require skips the test if Chromium is not installed. In CI the test fails.
func Require(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("chromium is missing")
		}
		t.Skip("SKIPPED, chromium is missing: apt-get install chromium")
	}
}

// Start is like Open, for browsers that several tests use. The process runs until stop is called.
func Start(more ...chromedp.ExecAllocatorOption) (tab context.Context, stop func(), err error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, err
	}
	slot, err := takeSlot()
	if err != nil {
		return nil, nil, err
	}
	profile, err := os.MkdirTemp("", "chromium-*")
	if err != nil {
		_ = slot.Unlock()
		return nil, nil, err
	}
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
	}, more)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	tab, stopTab := chromedp.NewContext(allocator)
	stop = func() {
		stopTab()
		stopAllocator()
		_ = os.RemoveAll(profile)
		_ = slot.Unlock()
	}
	// The browser runs as long as the context of the first call, so this context gets no deadline.
	limit := time.AfterFunc(startLimit, stopAllocator)
	defer limit.Stop()
	if err := chromedp.Do(tab, chromedp.Navigate("about:blank")); err != nil {
		stop()
		return nil, nil, fmt.Errorf("start chromium within %s: %w", startLimit, err)
	}
	return tab, stop, nil
}

// Do runs steps in a tab, within StepLimit.
func Do(tab context.Context, steps ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(tab, StepLimit)
	defer cancel()
	return chromedp.Do(ctx, steps...)
}

// Run runs one step in a tab and returns its result, within StepLimit.
func Run[T any](tab context.Context, step chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(tab, StepLimit)
	defer cancel()
	return chromedp.Run(ctx, step)
}

// Type waits until an element is visible, focuses it and types a text. Unlike chromedp.SendKeys it does not read the
// element's attributes, which chromedp does without the lock that its own updates hold.
func Type(selector, text string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, tab *chromedp.Target) (none chromedp.Void, err error) {
		if _, err = chromedp.Focus(selector, chromedp.NodeVisible)(ctx, tab); err != nil {
			return none, err
		}
		return chromedp.KeyEvent(text)(ctx, tab)
	}
}

// Press waits until a button is enabled and activates it with the keyboard, because a click would miss a button that
// the page is moving.
func Press(button string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, tab *chromedp.Target) (none chromedp.Void, err error) {
		if _, err = chromedp.WaitEnabled(button)(ctx, tab); err != nil {
			return none, err
		}
		return Type(button, kb.Enter)(ctx, tab)
	}
}

// Eventually waits until a JavaScript condition is true on a page, and reports whether it became true within StepLimit.
// An evaluation fails while the page navigates.
func Eventually(tab context.Context, js string) bool {
	ctx, cancel := context.WithTimeout(tab, StepLimit)
	defer cancel()
	// Each evaluation involves several processes, so poll less often the longer the wait takes.
	for pause := 5 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 100*time.Millisecond) {
		if yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+js+")")); err == nil && yes {
			return true
		}
		time.Sleep(pause)
	}
	return false
}

// takeSlot waits until fewer browsers are running than the machine has cores, but at least 2. The kernel releases the
// slots of killed processes.
func takeSlot() (*flock.Flock, error) {
	for {
		for n := range max(2, runtime.NumCPU()) {
			slot := flock.New(filepath.Join(reaper.MachineTempDir, fmt.Sprintf("service-chromium-%d.lock", n)))
			taken, err := slot.TryLock()
			if err != nil || taken {
				return slot, err
			}
			_ = slot.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
}
