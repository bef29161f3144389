package device

import (
	"fmt"
	"testing"

	"github.com/service-dev/service/glasses"
)

// With Pace, a panel takes the model's time for each picture, and skips waiting pictures except the latest.
func TestPace_TakesTheModelsTime(t *testing.T) {
	m, _ := glasses.Model("even_g1")
	d := New(m, Options{Pace: true})
	results := map[string]int64{} // time by command
	superseded := map[string]bool{}
	take := func() {
		for _, o := range d.Take() {
			if o.Frame.Type != glasses.TypeResult {
				continue
			}
			r, err := glasses.ParseResult(o.Frame.Payload)
			if err != nil || !r.OK {
				t.Fatalf("result of %s: %s", o.Frame.ID, o.Frame.Payload)
			}
			results[o.Frame.ID], superseded[o.Frame.ID] = o.Frame.At, r.Superseded
		}
	}
	for n := range 3 {
		show := glasses.Show{Tree: glasses.Node{Type: glasses.NodeText, Text: fmt.Sprint(n)}}
		f, err := glasses.New(glasses.TypeDisplayShow, fmt.Sprint("show-", n), 0, show)
		if err != nil {
			t.Fatal(err)
		}
		d.Handle(int64(n), f, nil)
		take()
	}
	unconfirmed := func() string { return d.Control(d.now, glasses.SimState, nil, nil).Unconfirmed }
	if unconfirmed() == "" {
		t.Error("a picture on its way counts as shown")
	}
	d.Tick(10_000)
	take()
	if why := unconfirmed(); why != "" {
		t.Errorf("a picture on the panel is not confirmed: %s", why)
	}
	full := m.Panel.FullMs
	for id, want := range map[string]int64{"show-0": full, "show-1": 2, "show-2": 2 * full} {
		if results[id] != want || superseded[id] != (id == "show-1") {
			t.Errorf("%s: answered at %d ms, superseded %v; want %d ms", id, results[id], superseded[id], want)
		}
	}
}

// If the link is lost, a waiting picture is refused, and the panel is free afterwards.
func TestPace_EndsWithTheLink(t *testing.T) {
	m, _ := glasses.Model("even_g1")
	d := New(m, Options{Pace: true})
	show, _ := glasses.New(glasses.TypeDisplayShow, "show", 0, glasses.Show{Tree: glasses.Node{Type: glasses.NodeText}})
	d.Handle(0, show, nil)
	d.Control(1, glasses.SimState, []byte(`{"link":"lost"}`), nil)
	var refused bool
	for _, o := range d.Take() {
		if o.Frame.ID == "show" {
			r, err := glasses.ParseResult(o.Frame.Payload)
			refused = err == nil && r.Error != nil && r.Error.Code == glasses.CodeNotConnected
		}
	}
	if !refused {
		t.Error("the picture on its way was not refused with not_connected")
	}
	d.Control(2, glasses.SimState, []byte(`{"link":"connected"}`), nil)
	again := show
	again.ID = "again"
	d.Handle(3, again, nil)
	d.Tick(100_000)
	for _, o := range d.Take() {
		if o.Frame.ID == "again" {
			return
		}
	}
	t.Error("after the link was back, a picture was not answered")
}

// paced returns a simulated Even G1 with Pace that shows the text "0" from time 0 on.
func paced(t *testing.T) (d *Device, show func(at int64, text string)) {
	t.Helper()
	m, _ := glasses.Model("even_g1")
	d = New(m, Options{Pace: true})
	show = func(at int64, text string) {
		tree := glasses.Show{Tree: glasses.Node{Type: glasses.NodeText, Text: text}}
		f, err := glasses.New(glasses.TypeDisplayShow, "show-"+text, 0, tree)
		if err != nil {
			t.Fatal(err)
		}
		d.Handle(at, f, nil)
	}
	show(0, "0")
	return d, show
}

// If an app redraws faster than its panel, a picture is always being sent, and the result has the view before it.
func TestPace_ReportsTheConfirmedView(t *testing.T) {
	d, show := paced(t)
	for n := int64(1); n <= 4; n++ {
		show(n*1000, fmt.Sprint(n))
		r := d.Control(n*1000, glasses.SimState, nil, nil)
		got := "none"
		if r.Confirmed != nil {
			got = r.Confirmed.Tree.Text
		}
		if want := []string{"", "none", "0", "0", "1"}[n]; r.Unconfirmed == "" || got != want {
			t.Errorf("after %d s: unconfirmed %q, confirmed view %s, want %s", n, r.Unconfirmed, got, want)
		}
	}
	d.Control(5000, glasses.SimState, []byte(`{"link":"lost"}`), nil)
	if r := d.Control(5001, glasses.SimState, []byte(`{"link":"connected"}`), nil); r.Confirmed != nil {
		t.Errorf("after the link was lost the view %+v counts as confirmed", r.Confirmed)
	}
	show(6000, "6")
	d.Control(6001, glasses.SimState, nil, nil)
	if r := d.Control(20_000, glasses.SimState, nil, nil); r.Unconfirmed != "" || r.Confirmed != nil {
		t.Errorf("the latest picture is on the panel: %+v", r)
	}
}

func TestPace_AnotherModelDropsThePicture(t *testing.T) {
	d, show := paced(t)
	show(1, "1")
	if r := d.Control(2, glasses.SimDevice, []byte(`{"deviceModel":"rayban_display"}`), nil); r.Unconfirmed != "" {
		t.Errorf("after the model was changed: %s", r.Unconfirmed)
	}
	refused := 0
	for _, o := range d.Take() {
		if r, err := glasses.ParseResult(o.Frame.Payload); o.Frame.Type == glasses.TypeResult && err == nil &&
			r.Error != nil && r.Error.Code == glasses.CodePlatform {
			refused++
		}
	}
	if _, waits := d.Next(); refused != 2 || waits {
		t.Errorf("%d pictures were refused and a timer is left: %v; want 2 and none", refused, waits)
	}
}
