package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// The minimum number of messages on each connection in the one-minute scenario. The app shows a display tree in each
// of the 60 seconds and after each of the 18 inputs, and reacts to the result of each show. The glasses receive one
// request for each second, each input and each show.
const (
	minuteShows       = 60 + 18
	minuteWithApp     = 2 * minuteShows
	minuteWithGlasses = 60 + 18 + minuteShows
	minutePictures    = 6
	minuteRuns        = 5
	minuteFrame       = `{"v":1,"type":"display.show","id":"minute-100","at":0,"payload":{"tree":` + minuteTree + `}}`
	minuteTree        = `{"type":"column","padding":8,"children":[` + minuteLine + `,` + minuteLine + `,` +
		minuteLine + `]}`
	minuteLine = `{"type":"text","text":"seconds 10"}`
)

// minute measures a scenario of 60 s of virtual time, with an app in its own process on loopback, 78 pictures on the
// panel and six files. The baseline is the sum of the parts: the same number of exchanges over a plain connection to
// each of the two processes, and drawing and encoding the six pictures.
func (b *bench) minute(p *peer) error {
	picture, err := nanoseconds(exec.Command(filepath.Join(b.work, "drawing"), "rayban_display", "png"))
	if err != nil {
		return err
	}
	bare, err := b.startBare("barerelay")
	if err != nil {
		return err
	}
	defer bare.stop()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	app, err := dial(ctx, "ws"+strings.TrimPrefix(bare.url, "http")+"/echo", nil)
	if err != nil {
		return err
	}
	defer app.CloseNow()
	glasses, err := spawn(exec.Command(filepath.Join(b.work, "echo")))
	if err != nil {
		return err
	}
	defer glasses.close()
	var ours, floor []time.Duration
	for range minuteRuns {
		d, err := b.oneMinute(p)
		if err != nil {
			return err
		}
		ours = append(ours, d)
		if d, err = timed(func() error { return minuteParts(ctx, app, glasses) }); err != nil {
			return err
		}
		floor = append(floor, d+minutePictures*picture)
	}
	b.rows = append(b.rows, timesRow("scenario of 60 s of virtual time on LocalSim / its parts, five runs", ours, floor,
		medianMs, "< 100 ms"))
	return nil
}

// minuteParts makes, over plain connections, as many exchanges as the scenario makes with its app and glasses.
func minuteParts(ctx context.Context, app *websocket.Conn, glasses *peer) error {
	var err error
	for n := 0; n < minuteWithApp && err == nil; n++ {
		if err = app.Write(ctx, websocket.MessageText, []byte(minuteFrame)); err == nil {
			_, _, err = app.Read(ctx)
		}
	}
	for n := 0; n < minuteWithGlasses && err == nil; n++ {
		err = glasses.exchange(minuteFrame)
	}
	return err
}

func (b *bench) oneMinute(p *peer) (time.Duration, error) {
	scenario, err := filepath.Abs("test/e2e/testdata/scenarios/minute.json")
	if err != nil {
		return 0, err
	}
	var s struct{ SessionID, AppEndpoint, AppTokenFile string }
	if err := p.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual"}, &s); err != nil {
		return 0, err
	}
	app := exec.Command(filepath.Join(b.work, "minute"))
	app.Env = []string{"SERVICE_GLASSES_URL=" + s.AppEndpoint, "SERVICE_GLASSES_SECRET_FILE=" + s.AppTokenFile}
	if err := app.Start(); err != nil {
		return 0, err
	}
	defer func() { app.Process.Kill(); app.Wait() }()
	var attached struct{ Status string }
	if err := p.call("waitForEvent", map[string]any{"sessionId": s.SessionID, "type": "display.show",
		"timeoutSeconds": 20}, &attached); err != nil {
		return 0, err
	}
	var report struct{ Verdict, Summary string }
	d, err := timed(func() error {
		return p.call("replaySession", map[string]any{"sessionId": s.SessionID, "file": scenario}, &report)
	})
	if err == nil && report.Verdict != "pass" {
		err = fmt.Errorf("the scenario did not pass: %s", report.Summary)
	}
	if err == nil {
		err = p.call("closeSession", map[string]any{"sessionId": s.SessionID}, &attached)
	}
	return d, err
}
