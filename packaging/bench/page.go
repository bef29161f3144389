package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chromedp/chromedp"
)

const pageRuns = 11

// page measures the time from requesting a simulator page to the first picture on its panel, in headless Chromium,
// with an empty and with a filled browser cache.
func (b *bench) page() error {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		fmt.Println("SKIPPED, chromium is missing: page load to first picture")
		return nil
	}
	backend, who, err := b.startLinked("")
	if err != nil {
		return err
	}
	defer backend.stop()
	id, _, err := who.session(0)
	if err != nil {
		return err
	}
	var cold, warm []time.Duration
	for n := range pageRuns {
		c, w, err := firstPictures(chromium, filepath.Join(b.work, fmt.Sprint("profile", n)), backend.url+"/s/"+id)
		if err != nil {
			return err
		}
		cold, warm = append(cold, c), append(warm, w)
	}
	b.rows = append(b.rows,
		row{"simulator page, request to first picture", ms(median(cold)), "", "", ""},
		row{"the same, with the browser's cache", ms(median(warm)), "", "", ""})
	return nil
}

// firstPictures opens the page in a new browser, signs in, and returns the times to the first picture without and with
// the cache.
func firstPictures(chromium, profile, url string) (cold, warm time.Duration, err error) {
	opts := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	opts = append(opts, chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(profile))
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	defer stopAlloc()
	tab, stop := chromedp.NewContext(alloc)
	defer stop()
	ctx, cancel := context.WithTimeout(tab, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(url), chromedp.SendKeys("input[name=email]", benchEmail),
		chromedp.SendKeys("input[name=password]", benchPassword), chromedp.Submit("input[name=email]")); err != nil {
		return 0, 0, fmt.Errorf("sign in: %w", err)
	}
	if cold, err = pictureTime(ctx); err != nil {
		return 0, 0, err
	}
	if err = chromedp.Do(ctx, chromedp.Reload()); err != nil {
		return 0, 0, err
	}
	warm, err = pictureTime(ctx)
	return cold, warm, err
}

// pictureTime waits for the performance mark that the page sets.
func pictureTime(ctx context.Context) (time.Duration, error) {
	for range 400 {
		at, err := chromedp.Run(ctx, chromedp.Evaluate[float64](
			`performance.getEntriesByName("first-picture")[0]?.startTime ?? -1`))
		if err == nil && at > 0 {
			return time.Duration(at * float64(time.Millisecond)), nil
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		time.Sleep(25 * time.Millisecond)
	}
	return 0, fmt.Errorf("no picture within 10 s")
}
