package app

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/test/chromium"
)

// samePixels compares the picture on the account's pages with the simulator's panel, both drawn at this moment.
const samePixels = `(async () => {
	const panel = document.querySelector("#panel canvas");
	const picture = await createImageBitmap(await (await fetch("/account/sessions/%s/panel")).blob());
	if (picture.width !== panel.width || picture.height !== panel.height) return "sizes differ";
	const copy = new OffscreenCanvas(panel.width, panel.height).getContext("2d");
	copy.drawImage(picture, 0, 0);
	const got = copy.getImageData(0, 0, panel.width, panel.height).data;
	copy.clearRect(0, 0, panel.width, panel.height);
	copy.drawImage(panel, 0, 0);
	const want = copy.getImageData(0, 0, panel.width, panel.height).data;
	let lit = 0, differ = 0;
	for (let i = 0; i < want.length; i += 4) {
		if (want[i] + want[i + 1] + want[i + 2] > 0) lit++;
		if (want[i] !== got[i] || want[i + 1] !== got[i + 1] || want[i + 2] !== got[i + 2]) differ++;
	}
	return lit < 500 ? "the panel is dark" : differ > 0 ? differ + " pixels differ" : "same";
})().then((result) => { window.compared = result; }); window.compared ?? "";`

// The account's pages show the output of a real app on a real simulator page, pixel for pixel, and close the session.
func TestSessionsPage_ShowsARealSession(t *testing.T) {
	b := startBackend(t)
	browser := newBrowser(t)
	var s backendapi.Session
	b.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`, &s)
	run(t, browser, chromedp.Navigate(b.url+"/signin?next=/account"), chromium.Type("#email", "ada@example.org"),
		chromium.Type("#password", testPassword), chromedp.Submit("#password"))
	see(t, browser, "#first", "First steps") // no app has attached yet
	see(t, browser, ".screen", "Nothing shown yet")
	run(t, browser, chromedp.Navigate(s.SessionURL))
	see(t, browser, "#socket", "Connected")
	stopApp := b.startApp(s)
	see(t, browser, "#display", "Hello, glasses")
	got := ""
	for end := time.Now().Add(15 * time.Second); got != "same" && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var err error // the page draws when the browser allows it
		if got, err = chromium.Run(browser, chromedp.Evaluate[string](fmt.Sprintf(samePixels, s.SessionID))); err != nil {
			t.Fatal(err)
		}
	}
	if got != "same" {
		t.Errorf("the picture and the panel: %s", got)
	}

	run(t, browser, chromedp.Navigate(b.url+"/account"))
	see(t, browser, ".session", "Hello Glasses")
	if steps, err := chromium.Run(browser, chromedp.Evaluate[bool](`!!document.querySelector("#first")`)); err != nil || steps {
		t.Errorf("the first steps stay although an app was seen (error %v)", err)
	}
	run(t, browser, chromedp.Click(`.account-nav a[href="/account/sessions"]`))
	see(t, browser, ".session", "App attached")
	stopApp()
	run(t, browser, chromedp.Click(`.session a[href*="/close"]`), chromedp.Click(`main form button[type="submit"]`))
	see(t, browser, "[role=status]", "The session is closed")
	see(t, browser, "main", "No open session")
	var closed backendapi.Session
	if b.call("GET", backendapi.PathSessions+"/"+s.SessionID, "", &closed); closed.State != "closed" {
		t.Errorf("the session is %s, want closed", closed.State)
	}
}
