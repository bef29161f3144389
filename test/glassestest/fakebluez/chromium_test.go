package fakebluez_test

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/test/chromium"
	"github.com/service-dev/service/test/glassestest/fakebluez"
	"github.com/service-dev/service/test/glassestest/peripheral"
	"github.com/service-dev/service/test/glassestest/peripheral/echo"
)

//go:embed testdata/drive.js
var pageScript string

// A page in Chromium, with its real Web Bluetooth, uses the fake: two choosers and two devices, one of which is lost.
func TestRadio_ServesChromium(t *testing.T) {
	left, right := echo.New("C0:FF:EE:00:00:01", "Echo_L"), echo.New("C0:FF:EE:00:00:02", "Echo_R")
	other := echo.New("C0:FF:EE:00:00:03", "Other")
	r := fakebluez.Start(t, fakebluez.Options{Peripherals: []peripheral.Peripheral{left, right, other}})
	tab := openPage(t, r)
	c := chromium.NewChooser(tab, t)
	var echoed strings.Builder
	for i := range 20 {
		fmt.Fprintf(&echoed, " %d/200", i)
	}
	for _, name := range []string{"Echo_L", "Echo_R"} {
		if err := chromium.Do(tab, chromedp.Click("button")); err != nil {
			t.Fatal(err)
		}
		got := evaluate(tab, "chosen")
		if listed := c.Pick(name); slices.Contains(listed, "Other") {
			t.Error("the list has a device that the page did not ask for")
		}
		wantText(t, got, name+":"+echoed.String())
	}
	got := evaluate(tab, `afterLoss("Echo_L")`)
	r.Emulate(func(int64) { left.Drop() })
	wantText(t, got, "still connected: Echo_R; Echo_L:"+echoed.String())
	if n, m := r.Calls("WriteValue request"), r.Calls("WriteValue command"); n != 30 || m != 30 {
		t.Errorf("%d requests and %d commands, want 30 each", n, m)
	}
}

type answer struct {
	text string
	err  error
}

// evaluate starts evaluating JavaScript that returns a promise of a string.
func evaluate(tab context.Context, js string) <-chan answer {
	got := make(chan answer, 1)
	go func() {
		text, err := chromium.Run(tab, chromedp.Evaluate[string](js, chromedp.EvalAwaitPromise))
		got <- answer{text, err}
	}()
	return got
}

func wantText(t *testing.T, got <-chan answer, want string) {
	t.Helper()
	if a := <-got; a.err != nil || a.text != want {
		t.Fatalf("the page answered %q (%v), want %q", a.text, a.err, want)
	}
}

// openPage returns a tab with a page that contains the script.
func openPage(t *testing.T, r *fakebluez.Radio) context.Context {
	t.Helper()
	tab := chromium.OpenBluetooth(t, r.Address)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "<!DOCTYPE html><title>Bluetooth</title><script>%s</script>"+
			"<button onclick=\"chosen = choose('%s', '%s', '%s')\">Choose</button>",
			pageScript, echo.Service, echo.Write, echo.Notify)
	}))
	t.Cleanup(page.Close)
	if err := chromium.Do(tab, chromedp.Navigate(page.URL)); err != nil {
		t.Fatal(err)
	}
	return tab
}
