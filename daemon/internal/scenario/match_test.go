package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
)

// kindsOf counts the differences by kind, including unlisted ones.
func kindsOf(r Report) map[string]int {
	kinds := map[string]int{}
	for _, d := range r.Diffs {
		kinds[d.Kind] += d.Times()
	}
	for kind, n := range r.MoreDiffs {
		kinds[kind] += n
	}
	return kinds
}

// A missing page turn is not paired with the next screen of the app.
func TestMatch_PairsNoFramesThatAreFarApart(t *testing.T) {
	want := []scenario.Request{screen(0, "News", "one", "1 of 2"), screen(14_100, "News", "two", "2 of 2"),
		screen(20_000, "Bye")}
	got := []scenario.Request{want[0], screen(14_400, "News", "Battery low", "Charge it"), want[2]}
	r := compared(t, want, got, true)
	if kinds := kindsOf(r); fmt.Sprint(kinds) != fmt.Sprint(map[string]int{DiffMissing: 1, DiffExtra: 1}) {
		t.Errorf("%v: %+v", kinds, r.Diffs)
	}
}

// A changed label counts as one change even while all frames are late.
func TestMatch_KnowsAFrameThatIsLateLikeTheOthers(t *testing.T) {
	want := []scenario.Request{screen(0, "a", "b"), screen(1000, "Menu", "Calendar", "x"), screen(2000, "c")}
	got := []scenario.Request{screen(5000, "a", "b"), screen(6000, "Menu", "Kalender", "y"), screen(7000, "c")}
	r := compared(t, want, got, true)
	if kinds := kindsOf(r); fmt.Sprint(kinds) != fmt.Sprint(map[string]int{DiffChanged: 1, DiffTime: 1}) {
		t.Errorf("%v: %+v", kinds, r.Diffs)
	}
}

// randomFrames returns random frames of up to four texts at increasing times, with few texts in common.
func randomFrames(t *rapid.T, label string) (list []frame) {
	at := int64(0)
	for range rapid.IntRange(0, 12).Draw(t, label) {
		at += rapid.Int64Range(0, 2000).Draw(t, "wait")
		texts := rapid.SliceOfN(rapid.StringMatching("[a-f]"), 1, 4).Draw(t, "texts")
		r := screen(at, texts...)
		list = append(list, newFrame(r.At, r.Type, r.Payload))
	}
	return list
}

// textsIn returns the texts of a frame's list.
func textsIn(t *rapid.T, f frame) (texts []string) {
	raw, err := json.Marshal(f.payload)
	if err != nil {
		t.Fatal(err)
	}
	show, err := glasses.ParseShow(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range show.Tree.Children {
		texts = append(texts, child.Text)
	}
	return texts
}

// Paired frames are equal, or share content and are close in time. Each frame occurs once, in order.
func TestMatch_PairsOnlyWhatIsAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, got, timed := randomFrames(t, "want"), randomFrames(t, "got"), rapid.Bool().Draw(t, "timed")
		w, g := 0, 0
		delays := []int64{0}
		pairs := matchFrames(want, got, timed)
		for _, p := range align(len(want), len(got), (&matcher{want: want, got: got, timed: timed}).costOfEqual) {
			if p.want >= 0 && p.got >= 0 {
				delays = append(delays, got[p.got].at-want[p.want].at)
			}
		}
		for _, p := range pairs {
			if p.want >= 0 {
				if p.want != w {
					t.Fatalf("pair %+v: want frame %d of the recording next", p, w)
				}
				w++
			}
			if p.got >= 0 {
				if p.got != g {
					t.Fatalf("pair %+v: want frame %d of the run next", p, g)
				}
				g++
			}
			if p.want < 0 || p.got < 0 || want[p.want].key == got[p.got].key {
				continue
			}
			one, other := textsIn(t, want[p.want]), textsIn(t, got[p.got])
			common := 0
			for _, text := range one {
				if i := slices.Index(other, text); i >= 0 {
					other = slices.Delete(other, i, i+1)
					common++
				}
			}
			most := max(len(one), common+len(other))
			late := got[p.got].at - want[p.want].at
			inTime := !timed || slices.Contains(delays, late)
			near := slices.ContainsFunc(delays, func(d int64) bool { return max(late-d, d-late) <= 1000 })
			switch {
			case inTime && (most == 1 || 3*common >= most):
			case near && 2*common > most:
			default:
				t.Fatalf("frames %d ms apart with %d of %d common texts are paired: %+v", late, common, most, p)
			}
		}
		if w != len(want) || g != len(got) {
			t.Fatalf("%d of %d and %d of %d frames occur in the pairs, want all", w, len(want), g, len(got))
		}
	})
}

// A label that changed on every screen counts as one difference with the number of frames.
func TestCompare_GroupsEqualChanges(t *testing.T) {
	var want, got []scenario.Request
	for i := range 30 {
		want = append(want, screen(int64(i), fmt.Sprint(i), "Menu"))
		switch {
		case i%3 == 0:
			got = append(got, screen(int64(i), fmt.Sprint(i), "Menü"))
		case i == 1:
			got = append(got, screen(int64(i), fmt.Sprint(i), "Mehr"))
		default:
			got = append(got, want[i])
		}
	}
	got = append(got, screen(40, "again"), screen(50, "again"))
	r := compared(t, want, got, true)
	var said []string
	for _, d := range r.Diffs {
		said = append(said, fmt.Sprintf("%d× %s at %d", d.Times(), d.Message, d.AtMs))
	}
	if fmt.Sprintf("%q", said) != fmt.Sprintf("%q", []string{`10× display.show list[1]: "Menu" -> "Menü" at 0`,
		`1× display.show list[1]: "Menu" -> "Mehr" at 1`,
		"1× display.show is extra: the same as the next frame, after display.show at 40",
		"1× display.show is extra at 50"}) || r.MoreDiffs != nil {
		t.Errorf("%q, %v", said, r.MoreDiffs)
	}
}

// The same change further down a list counts as the same. Another value does not, even if a message shortens both
// values to the same text.
func TestCompare_GroupsByWholeValues(t *testing.T) {
	long := strings.Repeat("x", 200)
	want := []scenario.Request{screen(0, "a", "b"), screen(1, "c", "a", "b"), screen(2, "a", "b")}
	got := []scenario.Request{screen(0, "a", long), screen(1, "c", "a", long), screen(2, "a", long+"y")}
	r := compared(t, want, got, true)
	if len(r.Diffs) != 2 || r.Diffs[0].Times() != 2 || r.Diffs[1].Times() != 1 {
		t.Errorf("%+v", r.Diffs)
	}
}

// An extra frame that equals the next one is reported with the preceding frame and its effect on the panel.
func TestCompare_SaysWhyAFrameIsExtra(t *testing.T) {
	photo := scenario.Request{At: 900, Type: glasses.TypeCameraPhoto, Payload: json.RawMessage(`{}`)}
	for _, test := range []struct {
		trace []scenario.Request
		says  string
	}{
		{[]scenario.Request{screen(0, "a"), photo, screen(950, "b"), screen(1000, "b")},
			"display.show is extra: the same as the next frame, after camera.photo; the panel changed"},
		{[]scenario.Request{screen(0, "a"), screen(0, "b"), photo, screen(950, "b"), screen(1000, "b")},
			"display.show is extra: the same as the next frame, after camera.photo; the panel did not change"},
		{[]scenario.Request{screen(0, "a"), photo, screen(950, "c"), screen(1000, "b")}, "display.show is extra"},
	} {
		x := &run{virtual: true, artifacts: map[int]int{}}
		x.s.Recorded = &scenario.Recorded{Clock: "virtual"}
		var shown []panel
		m, _ := glasses.Model("even_g1")
		for i, r := range test.trace {
			seq := int64(i + 1)
			x.rows = append(x.rows, glasses.Event{Seq: seq, At: r.At, Type: r.Type, Kind: glasses.KindRequest,
				Sender: glasses.SenderApp, Payload: r.Payload})
			if show, err := glasses.ParseShow(r.Payload); err == nil && r.Type == glasses.TypeDisplayShow {
				shown = append(shown, panel{at: r.At, request: seq, model: m, view: glasses.View{Tree: &show.Tree, Focus: -1}})
			}
		}
		got := framesOf(x.rows, 0, shown)
		want := slices.Delete(slices.Clone(got), len(got)-2, len(got)-1)
		x.compareFrames(t.Context(), want, got)
		if len(x.report.Diffs) != 1 || x.report.Diffs[0].Message != test.says {
			t.Errorf("%+v, want %q", x.report.Diffs, test.says)
		}
	}
}
