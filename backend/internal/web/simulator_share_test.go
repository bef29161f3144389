package web

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/test/chromium"
)

// hostile is text from an app that would break out of its element in a page that does not escape it.
const hostile = `</script><img src=x onerror="window.isHacked=1"></pre><script>window.isHacked=1</script>`

// share presses "Share" and returns the file.
func (s *pageTest) share() []byte {
	s.t.Helper()
	s.do(chromedp.Evaluate[chromedp.Void](`{ window.shared = ""; const make = URL.createObjectURL.bind(URL);
		URL.createObjectURL = (file) => { if (file.type === "text/html") file.text().then((text) => { window.shared = text; }); return make(file); };
		HTMLAnchorElement.prototype.click = function () { window.sharedName = this.download; }; }`),
		chromedp.Click("#tab-session"), chromedp.Click("#share-save"))
	s.see(`window.shared && document.querySelector("#share-state").textContent.startsWith("Saved")`)
	if name := eval[string](s, "window.sharedName"); name != pageTestSession+".html" {
		s.t.Errorf("the file is named %q, want the session", name)
	}
	return []byte(eval[string](s, "window.shared"))
}

// cookies returns the values of the cookies of the page.
func (s *pageTest) cookies() (values []string) {
	s.t.Helper()
	all, err := chromium.Run(s.ctx, func(ctx context.Context, target *chromedp.Target) (network.GetCookiesResult, error) {
		return cdp.Call(ctx, target, network.GetCookies, network.GetCookiesParams{URLs: []string{s.site.URL}})
	})
	if err != nil || len(all.Cookies) == 0 {
		s.t.Fatalf("read the cookies: got %v, error %v", all.Cookies, err)
	}
	for _, c := range all.Cookies {
		values = append(values, c.Value)
	}
	return values
}

// openShared stops the server and opens the file from disk.
func (s *pageTest) openShared(page []byte) {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "shared.html")
	if err := os.WriteFile(path, page, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.site.CloseClientConnections()
	s.do(chromedp.Navigate("file://" + path))
	s.see(`document.readyState === "complete"`)
}

// sharedPixels returns the pixels of the panel in a shared file.
func (s *pageTest) sharedPixels() []byte {
	s.t.Helper()
	text := eval[string](s, `(() => { const i = document.querySelector("#panel"); if (!i.complete || !i.naturalWidth || i.hidden) return "";
		const c = document.createElement("canvas"); c.width = i.naturalWidth; c.height = i.naturalHeight; const x = c.getContext("2d"); x.drawImage(i, 0, 0);
		const d = x.getImageData(0, 0, c.width, c.height).data;
		let t = ""; for (let n = 0; n < d.length; n += 8192) t += String.fromCharCode(...d.subarray(n, n + 8192)); return btoa(t); })()`)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

func TestSimulatorShare_OneFileWithoutNetwork(t *testing.T) {
	s := newPageTest(t, "rayban_display", withCamera)
	secret := "sgt_" + strings.Repeat("a1B2", 8)
	live := map[int][]byte{}
	for _, step := range []func(){
		func() { s.show(menu) },
		func() { s.key(kb.ArrowDown) },
		func() { s.result(s.command(glasses.TypeCameraPhoto, glasses.Photo{Width: 320})) },
		func() {
			s.result(s.command(glasses.TypeAudioStart, glasses.AudioStart{SampleRate: 16000}))
			s.next(glasses.TypeAudioChunk, "")
			s.next(glasses.TypeAudioChunk, "")
		},
		func() { s.result(s.command(glasses.TypeAudioStop, struct{}{})) },
		func() { s.command("com.example.note", map[string]string{"text": hostile, "token": secret}) },
		func() { s.fold() },
		func() { s.result(s.command(glasses.TypeDisplayClear, struct{}{})) },
		func() { s.fold() },
		func() { s.switchTo("even_g1") },
		func() { s.show(fmt.Sprintf(`{"tree":{"type":"text","text":%q}}`, hostile)) },
	} {
		seq, pixels := s.act(step)
		live[seq] = pixels
	}
	page := s.share()
	for _, cookie := range s.cookies() {
		if bytes.Contains(page, []byte(cookie)) {
			t.Error("the file contains a cookie")
		}
	}
	if bytes.Contains(page, []byte(secret)) || !bytes.Contains(page, []byte("(credential removed)")) {
		t.Error("the file contains a token that the app logged")
	}
	if bytes.Contains(page, []byte(s.site.URL)) || bytes.Contains(page, []byte("/api/sessions/")) {
		t.Error("the file names the server")
	}
	if d := os.Getenv("SCREENSHOTS"); d != "" {
		_ = os.WriteFile(filepath.Join(d, "shared.html"), page, 0o600)
	}
	s.openShared(page)
	for seq := 1; seq <= s.countRows(); seq++ {
		want, ok := live[seq]
		if !ok {
			continue
		}
		s.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector("#row-%d button").click()`, seq)))
		s.see(fmt.Sprintf(`document.querySelector("#at").textContent.includes("row %d") && document.querySelector("#panel").complete`, seq))
		if !bytes.Equal(s.sharedPixels(), want) {
			t.Errorf("row %d: the picture differs from the panel at that moment", seq)
		}
	}
	s.see(`[...document.querySelectorAll(".medium img")].some((i) => i.naturalWidth === 320)`)
	s.see(`document.querySelector("audio").duration >= 0.2 && !document.querySelector("audio").error`)
	s.see(`document.querySelectorAll(".rows > li").length === ` + fmt.Sprint(s.countRows()))
	if eval[bool](s, `Boolean(window.isHacked) || Boolean(document.querySelector('img[src="x"]'))`) {
		t.Error("text of the app became markup")
	}
	s.see(`document.querySelector(".rows").textContent.includes('</script><img src=x onerror=')`)
	if got := eval[[]string](s, `performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith("data:"))`); len(got) > 0 {
		t.Errorf("the file loads %v, want nothing", got)
	}
	// The scrubber moves by keyboard, and the search hides rows.
	s.do(chromedp.Focus("#scrub"), chromedp.KeyEvent(kb.Home))
	s.see(`document.querySelector("#at").textContent.includes("row 1.") && document.querySelector("#row-1 button").ariaCurrent === "true"`)
	s.do(chromedp.Evaluate[chromedp.Void](`{ const e = document.querySelector("#search"); e.value = "camera.photo"; e.dispatchEvent(new Event("input")); }`))
	s.see(`[...document.querySelectorAll(".rows > li")].filter((r) => !r.hidden).length === 2`)
	s.picture("shared")
}

// Content beyond the limits is left out, oldest first, and the file reports it.
func TestSimulatorShare_IsBounded(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.show(menu)
	for i := range 5_100 {
		s.row(glasses.Event{Kind: glasses.KindEvent, Chip: glasses.ChipCustom, Type: "com.example.many",
			ID: fmt.Sprint("many-", i), Sender: glasses.SenderApp, Payload: json.RawMessage(`{"points":3}`)})
	}
	s.see(`document.querySelector("#log-count").textContent === "5102 events"`)
	page := s.share()
	if !bytes.Contains(page, []byte("The 102 oldest of 5102 rows are left out.")) || len(page) > 8<<20 {
		t.Errorf("the file has %d bytes; want it to say that 102 rows are left out", len(page))
	}
}
