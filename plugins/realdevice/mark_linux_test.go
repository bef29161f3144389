package realdevice

import (
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/uncleared"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
	"github.com/service-dev/service/test/glassestest/fakebluez"
)

var pair27 = uncleared.Pair{DeviceModel: "even_g1", Name: "Even G1_27"}

// newMarkedWorld starts a radio with a pair in range, and an adapter that stores its marks in the returned folder.
func newMarkedWorld(t *testing.T) (*world, string) {
	t.Helper()
	w, dir := newWorld(t, fakebluez.Options{}, 27), t.TempDir()
	_, err := w.client.DescribeTransport(t.Context(), &pluginv1.DescribeTransportRequest{ConfigDir: []byte(dir)})
	if err != nil {
		t.Fatal(err)
	}
	return w, dir
}

// The pair is marked while it may show a picture, so that the mark stays if the adapter is killed. The next session
// reports it, and removes it after clearing the glasses.
func TestAttach_MarksGlassesUntilTheyAreCleared(t *testing.T) {
	t.Parallel()
	w, dir := newMarkedWorld(t)
	p := w.attach(t, "")
	if h := p.AwaitHardware(isUp); h.GetUncleared() {
		t.Error("glasses that no session used are reported as not cleared")
	}
	p.Must(glasses.TypeDisplayShow, hello)
	if !uncleared.Has(dir, pair27) {
		t.Error("the pair has no mark while it shows a picture")
	}
	p.End()
	if uncleared.Has(dir, pair27) {
		t.Error("the pair is marked after it was cleared")
	}
	if err := uncleared.Mark(dir, pair27); err != nil { // as if an adapter had been killed
		t.Fatal(err)
	}
	p = w.attach(t, "Even G1_27")
	if h := p.AwaitHardware(isUp); !h.GetUncleared() {
		t.Errorf("got %v, want glasses that may still show a picture", h)
	}
	p.Must(glasses.TypeDisplayClear, `{}`) // the arms accept commands now
	p.End()
	if uncleared.Has(dir, pair27) {
		t.Error("the pair is marked after a session that cleared it")
	}
}

// An arm that is disconnected when the session ends keeps its picture, so the mark stays.
func TestAttach_KeepsTheMarkOfAnArmThatIsAway(t *testing.T) {
	t.Parallel()
	w, dir := newMarkedWorld(t)
	p := w.attach(t, "")
	p.AwaitHardware(isUp)
	p.Must(glasses.TypeDisplayShow, hello)
	w.Emulate(func(now int64) { w.pairs[0].Occupy(now, true) })
	w.Drop(w.pairs[0].Left())
	p.AwaitHardware(func(h *pluginv1.Hardware) bool { return !isUp(h) })
	p.End()
	if !uncleared.Has(dir, pair27) {
		t.Error("the pair has no mark although nobody cleared its left arm")
	}
}
