package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
)

// recording is a device whose frames become rows, with the snapshot after each row.
type recording struct {
	t         *testing.T
	dev       *device.Device
	now       int64
	rows      []glasses.Event
	snapshots []glasses.Snapshot
	// isInner marks rows that are followed by others of the same instant: the device has no snapshot between them.
	isInner  []bool
	requests int
}

func newRecording(t *testing.T, model string) *recording {
	t.Helper()
	m, ok := glasses.Model(model)
	if !ok {
		t.Fatalf("no model %s", model)
	}
	return &recording{t: t, dev: device.New(m, device.Options{})}
}

func (r *recording) row(e glasses.Event) {
	e.Seq, e.At = int64(len(r.rows)+1), r.now
	r.rows = append(r.rows, e)
	r.snapshots = append(r.snapshots, r.dev.Snapshot())
	r.isInner = append(r.isInner, false)
}

func (r *recording) command(typ, payload string) {
	r.requests++
	id := fmt.Sprint("app-", r.requests)
	r.dev.Handle(r.now, glasses.Frame{V: 1, Type: typ, ID: id, At: r.now, Payload: json.RawMessage(payload)}, nil)
	r.row(glasses.Event{Kind: glasses.KindRequest, Type: typ, ID: id, Sender: glasses.SenderApp,
		Payload: json.RawMessage(payload)})
	r.take()
}

func (r *recording) control(typ, payload string) {
	r.dev.Control(r.now, typ, []byte(payload), nil)
	r.take()
}

func (r *recording) pass(ms int64) {
	r.now += ms
	for at, ok := r.dev.Next(); ok && at <= r.now; at, ok = r.dev.Next() {
		r.dev.Tick(at)
		r.take()
	}
	r.dev.Tick(r.now)
}

func (r *recording) take() {
	first := len(r.rows)
	defer func() {
		for i := first; i < len(r.rows)-1; i++ {
			r.isInner[i] = true
		}
	}()
	for _, o := range r.dev.Take() {
		if o.Ask == nil && o.Body == nil {
			r.row(glasses.Event{Kind: glasses.KindOf(o.Frame.Type), Type: o.Frame.Type, ID: o.Frame.ID,
				Sender: glasses.SenderGlasses, Payload: o.Frame.Payload})
		}
	}
}

// rebuild rebuilds the moments of rows, which are numbered from 1.
func (r *recording) rebuild(p past) []moment {
	r.t.Helper()
	if p.From == 0 {
		p.From, p.Until = p.Rows[0].Seq, p.Rows[len(p.Rows)-1].Seq
	}
	p.Next = r.dev.Snapshot()
	data, err := json.Marshal(p)
	if err != nil {
		r.t.Fatal(err)
	}
	moments, err := rebuild(string(data))
	if err != nil {
		r.t.Fatal(err)
	}
	return moments
}

// knownPart is the part of the glasses' state that the rows of a log determine.
type knownPart struct {
	Model string
	View  glasses.View
	App   glasses.AppState
}

func knownOf(s glasses.Snapshot) knownPart {
	return knownPart{s.DeviceModel, s.View, s.State.ForApp(s.State.Link, glasses.ClockReal)}
}

func longList(overflow string, n int) string {
	var entries []string
	for i := range n {
		entries = append(entries, fmt.Sprintf(`{"type":"button","id":"e%d","text":"Entry %d"}`, i, i))
	}
	return `{"tree":{"type":"list","overflow":"` + overflow + `","children":[` + strings.Join(entries, ",") + `]}}`
}

// For every sequence of events, the rebuilt glasses equal the device after each row.
func TestRebuild_EqualsTheDevice(t *testing.T) {
	trees := []string{twoButtons, oneText, longList("scroll", 30), longList("paginate", 25), longList("clip", 3)}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := newRecording(t, "rayban_display")
		for range 60 {
			switch random.IntN(9) {
			case 0, 1:
				r.command(glasses.TypeDisplayShow, trees[random.IntN(len(trees))])
			case 2, 3, 4:
				r.control(glasses.SimInput, fmt.Sprintf(`{"kind":"navigate","direction":%q}`,
					[]string{"down", "down", "up", "right"}[random.IntN(4)]))
			case 5:
				r.control(glasses.SimInput, fmt.Sprintf(`{"kind":"tap","x":%d,"y":%d}`, random.IntN(600), random.IntN(600)))
			case 6:
				r.command(glasses.TypeDisplayClear, `{}`)
			case 7:
				r.control(glasses.SimState, []string{`{"hinge":"folded"}`, `{"hinge":"open"}`, `{"worn":false}`, `{"worn":true}`,
					`{"link":"lost"}`, `{"link":"lossy"}`, `{"link":"connected"}`, `{"battery":{"level":9,"charging":true}}`}[random.IntN(8)])
			case 8:
				r.control(glasses.SimFault, []string{`{"command":"display.show","code":"busy"}`, `{"latencyMs":300}`}[random.IntN(2)])
			}
			if random.IntN(2) == 0 {
				r.pass(int64(random.IntN(500)))
			}
		}
		r.pass(5000)
		for i, m := range r.rebuild(past{IsFirst: true, Rows: r.rows}) {
			if r.isInner[i] {
				continue
			}
			if diff := cmp.Diff(knownOf(r.snapshots[i]), knownOf(m.Snapshot)); diff != "" || m.Certainty != exact {
				t.Fatalf("seed %d, row %d %s %s: %s, differs: %s", seed, i+1, r.rows[i].Type, r.rows[i].Payload, m.Certainty, diff)
			}
		}
	}
}

// A change of the model is part of the rows, but the previous model is not.
func TestRebuild_OtherModels(t *testing.T) {
	r := newRecording(t, "rayban_display")
	r.command(glasses.TypeDisplayShow, twoButtons)
	r.control(glasses.SimDevice, `{"deviceModel":"even_g1"}`)
	r.command(glasses.TypeDisplayShow, longList("paginate", 30))
	r.control(glasses.SimInput, `{"kind":"swipe","direction":"down"}`)
	moments := r.rebuild(past{IsFirst: true, Rows: r.rows})
	for i, m := range moments {
		if i < 2 {
			if m.Certainty != unknown || m.Snapshot.View.Tree != nil {
				t.Errorf("row %d: got %s with tree %v, want an unknown panel", i+1, m.Certainty, m.Snapshot.View.Tree)
			}
			continue
		}
		if diff := cmp.Diff(knownOf(r.snapshots[i]), knownOf(m.Snapshot)); diff != "" || m.Certainty != exact {
			t.Errorf("row %d: %s, differs: %s", i+1, m.Certainty, diff)
		}
	}
}

// State that the rows do not determine is not presented as known.
func TestRebuild_Certainty(t *testing.T) {
	r := newRecording(t, "rayban_display")
	r.command(glasses.TypeDisplayShow, twoButtons)                                                                 // 1, 2
	r.control(glasses.SimInput, `{"kind":"navigate","direction":"down"}`)                                          // 3
	r.row(glasses.Event{Kind: glasses.KindEvent, Type: glasses.RowGlassesAttached, Sender: glasses.SenderService}) // 4
	r.command(glasses.TypeDisplayShow, twoButtons)                                                                 // 5, 6
	r.command(glasses.TypeDisplayShow, oneText)                                                                    // 7, 8
	r.control(glasses.SimState, `{"hinge":"folded"}`)                                                              // 9
	for _, c := range []struct {
		name    string
		isFirst bool
		from    int // rows before it are gone
		want    []certainty
	}{
		{"whole log", true, 0, []certainty{exact, exact, exact, roughly, roughly, roughly, exact, exact, exact}},
		{"older rows are gone", false, 2, []certainty{unknown, unknown, roughly, roughly, exact, exact, exact}},
	} {
		var got []certainty
		moments := r.rebuild(past{IsFirst: c.isFirst, Rows: r.rows[c.from:]})
		for _, m := range moments {
			got = append(got, m.Certainty)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: certainty differs: %s", c.name, diff)
		}
		if before := moments[len(moments)-2].Snapshot.State.Hinge; before != glasses.HingeOpen {
			t.Errorf("%s: before the glasses were folded they were %s, want open", c.name, before)
		}
	}
	if _, err := rebuild("{"); err == nil {
		t.Error("rebuild accepted invalid JSON")
	}
}

// A snapshot is shown as it was, regardless of the live glasses.
func TestSnapshotPlayer(t *testing.T) {
	r := newRecording(t, "rayban_display")
	r.command(glasses.TypeDisplayShow, twoButtons)
	r.control(glasses.SimInput, `{"kind":"navigate","direction":"down"}`)
	data, err := json.Marshal(r.dev.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	p, err := snapshotPlayer(string(data))
	if err != nil {
		t.Fatal(err)
	}
	p.dev.Control(0, glasses.SimInput, []byte(`{"kind":"navigate","direction":"up"}`), nil)
	p.dev.Handle(0, glasses.Frame{Type: glasses.TypeDisplayClear, ID: "a"}, nil)
	p.dev.Tick(1000)
	if got := p.read(); got.Focus != "Second" || len(got.Lines) != 2 || p.dev.Model().ID != "rayban_display" {
		t.Errorf("got %+v on %s, want two lines and the focus on the second", got, p.dev.Model().ID)
	}
	if _, ok := p.dev.Next(); ok {
		t.Error("glasses of the past have a next step")
	}
	for _, bad := range []string{"", `{"deviceModel":"no_such"}`} {
		if _, err := snapshotPlayer(bad); err == nil {
			t.Errorf("snapshotPlayer(%q): got no error", bad)
		}
	}
}
