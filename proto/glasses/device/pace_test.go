package device

import (
	"fmt"
	"testing"

	"github.com/service-dev/service/proto/glasses"
)

// With its pace, a panel takes the model's time for each picture, and shows only the latest of those that wait.
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

// A picture that waits when the link is lost is refused, and the panel is free afterwards.
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
