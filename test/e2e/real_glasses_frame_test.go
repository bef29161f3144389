//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"image"
	"image/jpeg"
	"image/png"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/test/glassestest/fakebluez"
	"github.com/service-dev/service/test/glassestest/peripheral"
	"github.com/service-dev/service/test/glassestest/peripheral/frame"
)

// The same app behaves the same on a simulated Frame and on a real one, which is emulated here. Only the photo
// differs, because it comes from a different camera. The test does not run beside others: the emulated Frame takes
// hundreds of round trips for a picture, and the product allows ten seconds.
func TestRealGlasses_RunTheAppsOfTheSimulatorOnFrame(t *testing.T) {
	d, err := frame.New(t.Context(), frame.Options{
		Number: 0x4F, Main: "while true do frame.sleep(0.1) end",
		// No transmission delays, so that the commands' time limits are met on a busy machine.
		HookTime: -1, REPLTime: -1, NotifyTime: -1,
	})
	if err != nil {
		missing(t, "lua5.4", "apt-get install lua5.4")
	}
	t.Cleanup(func() { _ = d.Close() })
	radio := fakebluez.Start(t, fakebluez.Options{Peripherals: []peripheral.Peripheral{d}, MTU: 247})
	w := newWorld(t, "", "DBUS_SYSTEM_BUS_ADDRESS="+radio.Address)
	a := startAgent(w, "modern", false)
	radio.Emulate(func(now int64) { d.Photograph(now, grayPhoto(t, 640), 100) })
	photos := 0
	forEachDesk(t, a, func(t *testing.T, app []string) {
		simulated := a.call("startLocalSimulation", map[string]any{"fresh": true, "deviceModel": "brilliant_frame"})
		rows, picture := useDesk(t, w, a, app, simulated, func(id string) {
			a.call("injectInput", map[string]any{"sessionId": id, "kind": "tap"})
		})
		real := a.call("connectRealDevice", map[string]any{"deviceModel": "brilliant_frame", "timeoutSeconds": 30})
		if real.Structured["status"] != "connected" {
			t.Fatalf("connectRealDevice: got %v, want a connected Frame", real.Structured)
		}
		got, drawn := useDesk(t, w, a, app, real, func(string) {
			radio.Emulate(func(now int64) { d.Tap(now, "single") })
		})
		photos++
		if diff := cmp.Diff(withoutPhotos(t, rows), withoutPhotos(t, got)); diff != "" {
			t.Errorf("the event log differs from the simulator's:\n%s", diff)
		}
		if !bytes.Equal(picture, drawn) {
			t.Error("the service draws another picture than for the simulator")
		}
		want, err := png.Decode(bytes.NewReader(picture))
		if err != nil {
			t.Fatal(err)
		}
		must(t, "the Frame shows the simulator's picture", func() (same bool) {
			radio.Emulate(func(int64) {
				shown, ok := d.Picture()
				same = ok && sameLight(shown, want)
			})
			return same
		})
		a.call("closeSession", map[string]any{"sessionId": real.str(t, "sessionId")})
	})
	radio.Emulate(func(int64) {
		if v := d.Violations(); len(v) > 0 || len(d.Photos()) != photos {
			t.Errorf("the Frame took %d photos, want %d; the adapter broke its protocol: %v", len(d.Photos()), photos, v)
		}
	})
}

func grayPhoto(t *testing.T, size int) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := jpeg.Encode(&file, image.NewGray(image.Rect(0, 0, size, size)), nil); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

var photoFacts = regexp.MustCompile(`Photo: \d+ bytes|"media": \{[^}]*\}`)

// withoutPhotos returns the rows without the parts that depend on the content of a photo.
func withoutPhotos(t *testing.T, rows []map[string]any) string {
	t.Helper()
	text, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return photoFacts.ReplaceAllString(string(text), "photo")
}
