package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// realPictures is the number of pictures shown on real glasses, including the first, which is not counted.
const realPictures = 16

// realGlasses measures a picture from an app through the daemon, the adapter and an emulated radio to emulated Even
// G1, until both arms have acknowledged it. The baseline writes the same packets over the same radio to a second
// pair. It also compares LocalSim at the pace of real glasses with the time that the emulated glasses need.
func (b *bench) realGlasses() error {
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		fmt.Println("SKIPPED, dbus-daemon is missing: pictures on real glasses")
		return nil
	}
	radio := exec.Command(filepath.Join(b.work, "bareglasses"))
	radio.Stderr = os.Stderr
	bare, err := spawn(radio)
	if err != nil {
		return err
	}
	defer bare.close()
	bus, err := bare.out.ReadString('\n')
	if err != nil {
		return err
	}
	if _, err := bare.ask("show"); err != nil { // it connects its pair
		return fmt.Errorf("the bare loop does not show a picture: %w", err)
	}
	there := *b // with its own daemon, which uses the emulated radio
	there.env = append([]string{"DBUS_SYSTEM_BUS_ADDRESS=" + strings.TrimSpace(bus)}, b.env...)
	there.env = append(there.env, "SERVICE_CONFIG_DIR="+filepath.Join(b.work, "glasses"))
	defer func() { there.command("servicectl", "daemon", "stop").Run() }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	real, err := there.attachTo(ctx, "connectRealDevice",
		`{"deviceModel":"even_g1","name":"Even G1_27","timeoutSeconds":60}`)
	if err != nil {
		return err
	}
	defer real.CloseNow()
	paced, err := there.attachTo(ctx, "startLocalSimulation",
		`{"deviceModel":"even_g1","pace":"real","fresh":true}`)
	if err != nil {
		return err
	}
	defer paced.CloseNow()
	var ours, floor, simulated, own []time.Duration
	for n := range realPictures {
		frame := fmt.Appendf(nil, `{"v":1,"type":"display.show","id":"bench-%d","at":0,"payload":{"tree":{"type":"text",`+
			`"text":"picture %d"}}}`, n+1, n)
		if n == 1 { // end of the warm-up
			ours, floor, simulated, own = nil, nil, nil, nil
		}
		if err := measure(&ours, func() error { return roundTrip(ctx, real, frame) }); err != nil {
			return err
		}
		line, err := bare.ask("show")
		var took, needed time.Duration
		if err == nil {
			_, err = fmt.Sscan(line, &took, &needed)
		}
		if err != nil {
			return fmt.Errorf("the bare loop answered %q: %w", line, err)
		}
		floor, own = append(floor, took), append(own, needed)
		if err := measure(&simulated, func() error { return roundTrip(ctx, paced, frame) }); err != nil {
			return err
		}
	}
	b.rows = append(b.rows,
		timesRow("picture of an app on emulated Even G1 / a bare loop over the same radio", ours, floor, medianMs,
			"at most 1.15"),
		timesRow("LocalSim with pace real / the emulated glasses' own time", simulated, own, medianMs,
			"0.95 to 1.05"))
	return nil
}

// attachTo opens a session with a tool and attaches an app to it.
func (b *bench) attachTo(ctx context.Context, tool, arguments string) (*websocket.Conn, error) {
	out, err := b.command("servicectl", "tool", "call", tool, arguments, "--json").Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", tool, err, out)
	}
	var s struct{ Status, AppEndpoint, AppTokenFile string }
	if err := json.Unmarshal(out, &s); err != nil {
		return nil, err
	}
	if s.Status == "waiting" {
		return nil, fmt.Errorf("%s: the glasses are not connected: %s", tool, out)
	}
	secret, err := os.ReadFile(s.AppTokenFile)
	if err != nil {
		return nil, err
	}
	return attach(ctx, s.AppEndpoint, string(secret))
}
