package web

import (
	"encoding/json"
	"testing"

	"github.com/service-dev/service/glasses"
)

// The glasses are on time in the background, where browsers delay the timers of a page.
func TestSimulatorTimers_RunInBackground(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.see(`document.querySelector("#simulator").dataset.live === "yes"`)
	if !eval[bool](s, `(() => { Object.defineProperty(document, "hidden", { get: () => true }); setTimeout = () => 0;
		return document.dispatchEvent(new Event("visibilitychange")); })()`) {
		t.Fatal("the page refused to be hidden")
	}
	s.send(glasses.SimFault, "slow", json.RawMessage(`{"latencyMs":50}`))
	s.result("slow")
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); !r.OK || r.LateMs == 0 {
		t.Errorf("display.show in the background: got %+v, want ok and late", r)
	}
}
