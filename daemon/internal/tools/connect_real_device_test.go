package tools

import (
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
)

func TestConnectRealDevice(t *testing.T) {
	w := newWorld().locally()
	w.opened.DeviceModel = "even_g1"
	w.hardware = backend.Hardware{
		Pair:    backend.Pair{Name: "Even G1_27", Addresses: map[string]string{"left": "AA:BB:CC:DD:EE:FF"}},
		Carrier: "bluez", Links: []backend.HardwareLink{{Key: "left", State: "up", BatteryPercent: 80},
			{Key: "right", State: "up"}},
	}
	result, fields := w.call(t, "connectRealDevice", `{"name":"Even G1_27","timeoutSeconds":5}`, IO{})
	if fields["status"] != "connected" || w.real.Name != "Even G1_27" || w.real.Wait != 5*time.Second {
		t.Errorf("got %v and the request %+v, want connected glasses", fields, w.real)
	}
	if !strings.Contains(result.Text, "emulated") || strings.Contains(result.Text, "AA:BB") {
		t.Errorf("got %s, want the proof and no address", result.Text)
	}

	w.hardware.Links[1].State = "down"
	w.hardware.Problem = &problem.Error{Code: "radio_off", Message: "Bluetooth is switched off", FixHint: "Switch it on"}
	_, fields = w.call(t, "connectRealDevice", `{}`, IO{})
	if fields["status"] != "waiting" || !strings.Contains(fields["summary"].(string), "Switch it on") {
		t.Errorf("with the radio off: got %v, want waiting and the next step", fields)
	}
	if w.real.Wait != realWait*time.Second {
		t.Errorf("got a wait of %v, want %d s", w.real.Wait, realWait)
	}
}

// The address of the page is opened once and shown to the user, but appears nowhere else.
func TestConnectRealDevice_OpensThePage(t *testing.T) {
	w := newWorld().locally()
	w.opened.DeviceModel = "even_g1"
	w.hardware = backend.Hardware{
		Carrier: "browser", Links: []backend.HardwareLink{{Key: "left", State: "opening"}, {Key: "right", State: "down"}},
		ConnectURL: "http://127.0.0.1:4711/#token", Steps: []string{"Open the case."},
		Problem: &problem.Error{Code: "not_chosen", Message: "the page is not open", FixHint: "open it"},
	}
	_, fields := w.call(t, "connectRealDevice", `{"via":"browser"}`, IO{})
	summary, _ := fields["summary"].(string)
	if fields["status"] != "waiting_for_person" || !strings.Contains(summary, w.hardware.ConnectURL) ||
		!strings.Contains(summary, "Open the case.") {
		t.Errorf("got %v, want the page and the steps for the user", fields)
	}
	if w.real.Via != "browser" || len(w.browsed) != 1 || w.browsed[0] != w.hardware.ConnectURL {
		t.Errorf("got the request %+v and the opened pages %v, want the page in the browser", w.real, w.browsed)
	}
	w.hardware.ConnectURL = ""
	w.hardware.Problem = &problem.Error{Code: "cancelled", Message: "no glasses were chosen", FixHint: "Press again."}
	_, fields = w.call(t, "connectRealDevice", `{}`, IO{})
	if fields["status"] != "waiting_for_person" ||
		!strings.Contains(fields["summary"].(string), ": Press again. Then call") {
		t.Errorf("on the page: got %v, want the next step", fields)
	}
	if len(w.browsed) != 1 {
		t.Errorf("opened %v, want one page", w.browsed)
	}
}
