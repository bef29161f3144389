//go:build unix

package e2e

import (
	"context"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/test/chromium"
)

// newBrowser returns a browser without cookies, which is one user's browser, with a fake camera. Tests share one
// Chromium, in which each has its own browser context, because starting Chromium takes a second of processor time. A
// test that needs options starts its own Chromium.
func newBrowser(t *testing.T, options ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	chromium.Require(t)
	if len(options) > 0 {
		return chromium.Open(t, append(options, browserOptions...)...)
	}
	first := shared.use(t)
	tab, stop := chromedp.NewContext(first, chromedp.WithNewBrowserContext(), chromedp.WithNewWindow(true))
	tab, cancel := context.WithTimeout(tab, chromium.TestLimit)
	t.Cleanup(func() { cancel(); stop() })
	if err := chromedp.Do(tab, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("open a window in chromium: %v", err)
	}
	return tab
}

var browserOptions = []chromedp.ExecAllocatorOption{
	chromedp.WindowSize(1200, 900), chromedp.Flag("use-fake-device-for-media-stream", true),
	chromedp.Flag("use-fake-ui-for-media-stream", true),
}

var shared sharedChromium

// sharedChromium is a Chromium that runs only while tests use it, because the machine has few slots for browsers.
type sharedChromium struct {
	mu    sync.Mutex
	users int
	first context.Context
	stop  func()
}

// use returns the first tab of the running Chromium, which stays open until the test ends.
func (s *sharedChromium) use(t *testing.T) context.Context {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		first, stop, err := chromium.Start(browserOptions...)
		if err != nil {
			t.Fatal(err)
		}
		s.first, s.stop = first, stop
	}
	s.users++
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.users--; s.users == 0 {
			s.stop()
		}
	})
	return s.first
}
