package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

const pageRuns = 5

// page measures, in headless Chromium, how long users wait for a simulator page and what an open page costs. The
// baseline is an empty page in the same browser.
func (b *bench) page() error {
	if _, err := exec.LookPath("chromium"); err != nil {
		fmt.Println("SKIPPED, chromium is missing: the simulator page")
		return nil
	}
	backend, who, err := b.startLinked("")
	if err != nil {
		return err
	}
	defer backend.stop()
	empty := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(rw, "<!doctype html><title>empty</title><p>An empty page.</p>")
	}))
	defer empty.Close()
	m := &pageBench{work: b.work, backend: backend.url, who: who, empty: empty.URL}
	if err := m.loads(); err != nil {
		return err
	}
	if err := m.busy(); err != nil {
		return err
	}
	b.rows = append(b.rows, m.rows...)
	return nil
}

// pageBench is a backend and an empty page, for browsers to open.
type pageBench struct {
	work, backend, empty string
	who                  *linked
	rows                 []row
}

// loads measures the time from the request for a simulator page until its first picture and until it acts as the
// glasses.
func (m *pageBench) loads() error {
	id, err := m.sessionWithPicture()
	if err != nil {
		return err
	}
	var floor []time.Duration
	pictures, live := make([][]time.Duration, 2), make([][]time.Duration, 2) // with an empty cache and with a filled one
	for range pageRuns {
		err := m.inBrowser(func(tab context.Context) error {
			at, err := opened(tab, m.empty, firstPaint)
			floor = append(floor, at)
			for visit := 0; visit < 2 && err == nil; visit++ {
				if at, err = opened(tab, m.backend+"/s/"+id, livePanel); err != nil {
					break
				}
				live[visit] = append(live[visit], at)
				at, err = reached(tab, firstPicture)
				pictures[visit] = append(pictures[visit], at)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for visit, name := range []string{"simulator page", "the same, with the browser's cache"} {
		m.rows = append(m.rows,
			timesRow(name+", request to first picture / empty page", pictures[visit], floor, medianMs,
				[]string{"400 ms", "150 ms"}[visit]),
			timesRow(name+", request to live panel / empty page", live[visit], floor, medianMs, ""))
	}
	return nil
}

// sessionWithPicture returns a new session whose app has shown a picture.
func (m *pageBench) sessionWithPicture() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id, secret, err := m.who.session(0)
	if err != nil {
		return "", err
	}
	app, err := attach(ctx, "ws"+strings.TrimPrefix(m.backend, "http")+"/api/sessions/"+id+"/app", secret)
	if err != nil {
		return "", err
	}
	defer app.CloseNow()
	return id, m.inBrowser(func(tab context.Context) error {
		if _, err := opened(tab, m.backend+"/s/"+id, livePanel); err != nil {
			return err
		}
		_, err := showMany(tab, app, 0, 1)
		return err
	})
}

// Times since the request for the page, in ms; -1 if the page has not reached that point.
const (
	firstPaint   = `performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? -1`
	livePanel    = `performance.getEntriesByName("live-panel")[0]?.startTime ?? -1`
	firstPicture = `performance.getEntriesByName("first-picture")[0]?.startTime ?? -1`
)

// inBrowser runs f with a tab of a new browser with an empty cache, where the user is signed in.
func (m *pageBench) inBrowser(f func(tab context.Context) error) error {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return err
	}
	opts := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	opts = append(opts, chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(filepath.Join(m.work, fmt.Sprint("profile", time.Now().UnixNano()))))
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	defer stopAlloc()
	tab, stop := chromedp.NewContext(alloc)
	defer stop()
	ctx, cancel := context.WithTimeout(tab, 5*time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(m.backend+"/signin"), chromedp.SendKeys("input[name=email]", benchEmail),
		chromedp.SendKeys("input[name=password]", benchPassword), chromedp.Submit("input[name=email]"),
		chromedp.WaitVisible(`form[action="/signout"]`)); err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	return f(ctx)
}

// opened opens a page and returns the time at which it reached a point.
func opened(tab context.Context, url, point string) (time.Duration, error) {
	if err := chromedp.Do(tab, chromedp.Navigate(url)); err != nil {
		return 0, err
	}
	return reached(tab, point)
}

// reached waits until the page has reached a point, and returns the time.
func reached(tab context.Context, point string) (time.Duration, error) {
	for range 400 {
		at, err := chromedp.Run(tab, chromedp.Evaluate[float64](point))
		if err == nil && at > 0 {
			return time.Duration(at * float64(time.Millisecond)), nil
		}
		if tab.Err() != nil {
			return 0, tab.Err()
		}
		time.Sleep(25 * time.Millisecond)
	}
	return 0, fmt.Errorf("the page did not reach %s within 10 s", point)
}
