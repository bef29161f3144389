package web

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/test/chromium"
)

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

// withoutScripts loads subsequent pages without running their scripts.
func (s *pageTest) withoutScripts() {
	s.t.Helper()
	s.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
}

// beforeScripts runs a script in subsequent pages before their own.
func (s *pageTest) beforeScripts(script string) {
	s.t.Helper()
	if _, err := chromedp.Call(s.ctx, cdppage.AddScriptToEvaluateOnNewDocument,
		cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
		s.t.Fatal(err)
	}
}

// signIn signs ada in without the form, which TestSignIn_ByKeyboard uses.
func (s *pageTest) signIn() {
	s.t.Helper()
	cookies := network.SetCookiesParams{}
	for _, c := range signedIn(s.t, s.site, ada).client.Jar.Cookies(mustURL(s.site.URL)) {
		cookies.Cookies = append(cookies.Cookies, &network.CookieParam{Name: c.Name, Value: c.Value, URL: s.site.URL,
			HTTPOnly: true})
	}
	if _, err := chromedp.Call(s.ctx, network.SetCookies, cookies); err != nil {
		s.t.Fatal(err)
	}
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
