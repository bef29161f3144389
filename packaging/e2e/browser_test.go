//go:build unix

package e2e

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/packaging/chromium"
)

// newBrowser starts a headless Chromium with its own profile, which is one user's browser.
func newBrowser(t *testing.T, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	return chromium.Open(t, append(more, chromedp.WindowSize(1200, 900))...)
}
