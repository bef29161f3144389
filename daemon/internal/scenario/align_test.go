package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
)

// compared returns the differences that a run without artifacts finds between two traces.
func compared(t interface{ Context() context.Context }, want, got []scenario.Request, virtual bool) Report {
	x := &run{virtual: virtual, artifacts: map[int]int{}}
	x.s.Recorded = &scenario.Recorded{Clock: "virtual", Trace: want}
	for i, r := range got {
		x.rows = append(x.rows, glasses.Event{Seq: int64(i + 1), At: r.At, Type: r.Type, Sender: glasses.SenderApp,
			Payload: r.Payload})
	}
	w, _ := recordedFrames(x.s.Recorded)
	x.compareFrames(t.Context(), w, framesOf(x.rows, 0, nil))
	return x.report
}

// total counts the differences, including unlisted ones.
func total(r Report) int {
	count := 0
	for _, d := range r.Diffs {
		count += d.Times()
	}
	for _, n := range r.MoreDiffs {
		count += n
	}
	return count
}

func screen(at int64, texts ...string) scenario.Request {
	tree := glasses.Node{Type: glasses.NodeList}
	for _, text := range texts {
		tree.Children = append(tree.Children, glasses.Node{Type: glasses.NodeText, Text: text})
	}
	raw, _ := json.Marshal(glasses.Show{Tree: tree})
	return scenario.Request{At: at, Type: glasses.TypeDisplayShow, Payload: raw}
}

// screens returns random frames, some of them alike.
func screens(t *rapid.T, label string, most int) (list []scenario.Request) {
	for i := range rapid.IntRange(0, most).Draw(t, label) {
		text := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "text"))
		list = append(list, screen(int64(100*i), "Title", text, "End"))
	}
	return list
}

func TestAlign_FindsExactlyWhatWasInsertedOrRemoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long := screens(t, "frames", 60)
		drop := rapid.IntRange(0, len(long)).Draw(t, "k")
		short := slices.Clone(long)
		for range drop {
			i := rapid.IntRange(0, len(short)-1).Draw(t, "at")
			short = slices.Delete(short, i, i+1)
		}
		removed, inserted := compared(t, long, short, true), compared(t, short, long, true)
		if total(removed) != drop || total(inserted) != drop {
			t.Fatalf("%d removed frames: %d differences, or %d when inserted; want one per frame",
				drop, total(removed), total(inserted))
		}
		for _, d := range removed.Diffs {
			if d.Kind != DiffMissing {
				t.Fatalf("removed: %+v", d)
			}
		}
		for _, d := range inserted.Diffs {
			if d.Kind != DiffExtra {
				t.Fatalf("inserted: %+v", d)
			}
		}
	})
}

// Lists that are too long for one table are aligned in windows, with the same result if there are few differences.
func TestAlign_LongRecordings(t *testing.T) {
	var want, got []scenario.Request
	for i := range 5000 {
		want = append(want, screen(int64(i), fmt.Sprint(i)))
		if i%1000 != 500 {
			got = append(got, screen(int64(i), fmt.Sprint(i)))
		}
		if i%1000 == 700 {
			got = append(got, screen(int64(i), "extra", fmt.Sprint(i)))
		}
	}
	r := compared(t, want, got, true)
	kinds := map[string]int{}
	for _, d := range r.Diffs {
		kinds[d.Kind]++
	}
	if total(r) != 10 || kinds[DiffMissing] != 5 || kinds[DiffExtra] != 5 {
		t.Errorf("%d differences: %+v; want 5 missing and 5 extra", total(r), r.Diffs)
	}
}

func TestAlign_ListsAreBoundedAndCounted(t *testing.T) {
	var want []scenario.Request
	for i := range 40 {
		want = append(want, screen(int64(i), fmt.Sprint(i)))
	}
	r := compared(t, want, nil, true)
	if len(r.Diffs) != maxDiffs || r.MoreDiffs[DiffMissing] != 40-maxDiffs {
		t.Errorf("%d differences listed, %v more; want maxDiffs listed", len(r.Diffs), r.MoreDiffs)
	}
}

// The ids of sleeps are not compared, because an app's command ids differ between runs.
func TestAlign_ComparesNoIDOfSleeps(t *testing.T) {
	one := newFrame(0, glasses.TypeClockCancel, []byte(`{"id":"06d8d764a526-14"}`))
	other := newFrame(0, glasses.TypeClockCancel, []byte(`{"id":"3783bdaaca4a-14"}`))
	if one.key != other.key {
		t.Errorf("%s and %s differ, want them equal", one.key, other.key)
	}
}

func TestAlign_TellsWhatDiffers(t *testing.T) {
	want := []scenario.Request{screen(0, "a", "Calendar"), screen(100, "b", "c"), screen(200, "d")}
	event := func(at int64) scenario.Request {
		return scenario.Request{At: at, Type: "com.example.score", Payload: json.RawMessage(`{"points":1}`)}
	}
	for name, test := range map[string]struct {
		got     []scenario.Request
		virtual bool
		diffs   []string
	}{
		"the same": {want, true, nil},
		"a label": {[]scenario.Request{screen(0, "a", "Kalender"), want[1], want[2]}, true,
			[]string{`changed 0 display.show list[1]: "Calendar" -> "Kalender"`}},
		"an extra frame": {[]scenario.Request{want[0], event(50), want[1], want[2]}, true,
			[]string{"extra 50 com.example.score is extra"}},
		"a missing frame": {[]scenario.Request{want[0], want[2]}, true, []string{"missing 100 display.show is missing"}},
		"an extra frame before one that changed": {
			[]scenario.Request{want[0], screen(50, "x", "y"), screen(100, "b", "C"), want[2]}, true,
			[]string{"extra 50 display.show is extra", `changed 100 display.show list[1]: "c" -> "C"`}},
		"a delay that lasts": {[]scenario.Request{want[0], screen(150, "b", "c"), screen(250, "d")}, true,
			[]string{"time 150 display.show arrived at another time"}},
		"a delay that ends": {[]scenario.Request{want[0], screen(150, "b", "c"), want[2]}, true,
			[]string{"time 150 display.show arrived at another time"}},
		"times of a real clock": {[]scenario.Request{want[0], screen(150, "b", "c"), screen(250, "d")}, false, nil},
		"another command": {[]scenario.Request{want[0], event(100), want[2]}, true,
			[]string{"missing 100 display.show is missing", "extra 100 com.example.score is extra"}},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			for _, d := range compared(t, want, test.got, test.virtual).Diffs {
				said = append(said, fmt.Sprintf("%s %d %s", d.Kind, d.AtMs, d.Message))
			}
			slices.Sort(said)
			slices.Sort(test.diffs)
			if !slices.Equal(said, test.diffs) {
				t.Errorf("%q, want %q", said, test.diffs)
			}
		})
	}
}

// Each of ten thousand different findings is listed once, in linear time.
func TestFindings_AreListedOnce(t *testing.T) {
	var rows []glasses.Event
	for i := range 20_000 {
		raw, _ := json.Marshal(glasses.Result{OK: true, Findings: []glasses.Finding{
			{Kind: "clipped", Path: "tree", Text: fmt.Sprint(i % 10_000)}}})
		rows = append(rows, glasses.Event{Kind: glasses.KindResult, Type: glasses.TypeResult, Payload: raw})
	}
	if found := Findings(rows, "even_g1"); len(found) != 10_000 || found[7].Text != "7" {
		t.Errorf("%d findings, want 10,000", len(found))
	}
}
