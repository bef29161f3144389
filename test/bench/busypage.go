package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
)

const (
	busyRows   = 10_000           // rows of the event log before the measurement
	busyShows  = 30               // display.show per second during the measurement
	busyLength = 10 * time.Second // length of the measurement
)

// busy measures frames per second and memory of a simulator page with a long event log, while an app keeps changing
// the panel.
func (m *pageBench) busy() error {
	var rates, used, emptyRates, emptyUsed []float64
	for range pageRuns {
		err := m.inBrowser(func(tab context.Context) error {
			// The developer tools record every response in the page's process. Users' pages have no such record.
			if _, err := chromedp.Call(tab, network.Disable, cdp.Empty{}); err != nil {
				return err
			}
			if err := chromedp.Do(tab, chromedp.Navigate(m.empty)); err != nil {
				return err
			}
			rate, memory, err := whileShowing(tab, func(ctx context.Context) error { return sleep(ctx, busyLength) })
			if err != nil {
				return err
			}
			emptyRates, emptyUsed = append(emptyRates, rate), append(emptyUsed, memory)
			if rate, memory, err = m.busyOnce(tab); err != nil {
				return err
			}
			rates, used = append(rates, rate), append(used, memory)
			return nil
		})
		if err != nil {
			return err
		}
	}
	what := fmt.Sprintf("simulator page, %d rows of log and %d shows a second: ", busyRows, busyShows)
	rate, floor := middle(rates), middle(emptyRates)
	memory, least := middle(used), middle(emptyUsed)
	m.rows = append(m.rows,
		row{what + "frames a second / empty page", fmt.Sprintf("%.1f", rate), fmt.Sprintf("%.1f", floor),
			ratio(rate, floor), ">= 50"},
		row{what + "resident memory / empty page", fmt.Sprintf("%.0f MB", memory), fmt.Sprintf("%.0f MB", least),
			ratio(memory, least), "<= 200 MB"})
	return nil
}

// busyOnce fills the log of a new session whose page is open in the tab, and then measures.
func (m *pageBench) busyOnce(tab context.Context) (rate, memory float64, err error) {
	id, secret, err := m.who.session(0)
	if err != nil {
		return 0, 0, err
	}
	app, err := attach(tab, "ws"+strings.TrimPrefix(m.backend, "http")+"/api/sessions/"+id+"/app", secret)
	if err != nil {
		return 0, 0, err
	}
	defer app.CloseNow()
	if _, err := opened(tab, m.backend+"/s/"+id, livePanel); err != nil {
		return 0, 0, err
	}
	sent := 0
	for sent < busyRows/2 { // each show and each result adds one row
		if sent, err = showMany(tab, app, sent, inFlight); err != nil {
			return 0, 0, err
		}
	}
	if _, err := chromedp.Run(tab, chromedp.Poll[bool](fmt.Sprintf(
		`document.querySelector("#log-count").textContent.replace(/\D/g, "") >= %d`, busyRows))); err != nil {
		return 0, 0, fmt.Errorf("fill the log: %w", err)
	}
	return whileShowing(tab, func(ctx context.Context) error {
		tick := time.NewTicker(time.Second / busyShows)
		defer tick.Stop()
		for end := time.Now().Add(busyLength); time.Now().Before(end); <-tick.C {
			if sent, err = showMany(ctx, app, sent, 1); err != nil {
				return err
			}
		}
		return nil
	})
}

// showMany shows n pictures on the panel and waits for their results. Each picture has its own number, starting at
// sent; showMany returns the next one.
func showMany(ctx context.Context, app *websocket.Conn, sent, n int) (int, error) {
	for end := sent + n; sent < end; sent++ {
		tree := fmt.Sprintf(`{"tree":{"type":"column","children":[{"type":"text","text":"Desk","style":"title"},`+
			`{"type":"text","text":"Picture %d"},{"type":"progress","value":%d},`+
			`{"type":"button","id":"next","text":"Next"}]}}`, sent, sent%100)
		f := glasses.Frame{Type: glasses.TypeDisplayShow, ID: "show-" + strconv.Itoa(sent), At: int64(sent),
			Payload: json.RawMessage(tree)}
		data, err := f.Encode()
		if err != nil {
			return sent, err
		}
		if err := app.Write(ctx, websocket.MessageText, data); err != nil {
			return sent, err
		}
	}
	for results := 0; results < n; {
		_, data, err := app.Read(ctx)
		if err != nil {
			return sent, err
		}
		var f struct { // frames of the service itself need no id
			Type    string
			Payload json.RawMessage
		}
		if err := json.Unmarshal(data, &f); err != nil {
			return sent, err
		}
		if f.Type != glasses.TypeResult {
			continue
		}
		if !strings.Contains(string(f.Payload), `"ok":true`) {
			return sent, fmt.Errorf("display.show %d: %s", sent, f.Payload)
		}
		results++
	}
	return sent, nil
}

// whileShowing runs f and returns how many frames per second the tab drew meanwhile, and the resident memory of its
// process at the end, in MB.
func whileShowing(tab context.Context, f func(context.Context) error) (rate, memory float64, err error) {
	const count = `(() => { window.frames = 0; window.began = performance.now();
		const next = () => { window.frames++; requestAnimationFrame(next); }; requestAnimationFrame(next); return true; })()`
	if _, err := chromedp.Run(tab, chromedp.Evaluate[bool](count)); err != nil {
		return 0, 0, err
	}
	if err := f(tab); err != nil {
		return 0, 0, err
	}
	rate, err = chromedp.Run(tab, chromedp.Evaluate[float64](`window.frames * 1000 / (performance.now() - window.began)`))
	if err != nil {
		return 0, 0, err
	}
	memory, err = rendererMemory(tab)
	return rate, memory, err
}

// rendererMemory returns the resident memory of the tab's process, which is the browser's largest renderer, in MB.
func rendererMemory(tab context.Context) (float64, error) {
	all, err := chromedp.CallBrowser(tab, systeminfo.GetProcessInfo, cdp.Empty{})
	if err != nil {
		return 0, err
	}
	var most int64
	for _, p := range all.ProcessInfo {
		if p.Type == "renderer" {
			rss, _, err := memory(int(p.ID))
			if err != nil {
				return 0, err
			}
			most = max(most, rss)
		}
	}
	return float64(most) / 1024, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
