package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"image"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/glasses/scenario"
)

// playing returns simulated glasses that show a tree.
func playing(t *testing.T, model, display string) *player {
	t.Helper()
	var p player
	if err := p.start(model, "", display, "", "page-1"); err != nil {
		t.Fatal(err)
	}
	return &p
}

func wantStep(t *testing.T, p *player, want *scenario.ExpectDisplay) {
	t.Helper()
	data, err := json.Marshal(p.step())
	if err != nil {
		t.Fatal(err)
	}
	steps, err := scenario.ParseSteps([]byte("[" + string(data) + "]"))
	if err != nil {
		t.Fatalf("the scenario refuses the step %s: %v", data, err)
	}
	if diff := cmp.Diff([]scenario.Step{{ExpectDisplay: want}}, steps); diff != "" {
		t.Errorf("step %s: %s", data, diff)
	}
}

func TestStep_ExpectsWhatTheWearerSees(t *testing.T) {
	picture := base64.StdEncoding.EncodeToString(render.PNG(image.NewNRGBA(image.Rect(0, 0, 4, 4))))
	p := playing(t, "rayban_display", strings.ReplaceAll(`{"tree":{"type":"column","children":[{"type":"text","text":"Say \"yes\"\nor no"},
		{"type":"image","id":"map","alt":"A map","data":"PICTURE","width":40,"height":40},
		{"type":"button","id":"yes","text":"Yes"},{"type":"column","children":[{"type":"text","text":""}]},
		{"type":"column","overflow":"scroll","grow":1,"children":[{"type":"icon","icon":"star","width":600,"height":600},
		{"type":"text","text":"Far below"}]}]}}`, "PICTURE", picture))
	wantStep(t, p, &scenario.ExpectDisplay{Text: []string{"Say \"yes\"\nor no", "Yes"}, InOrder: true,
		Images: []string{"A map"}, Focus: new("yes")})

	p.dev.Control(0, glasses.SimState, []byte(`{"worn":false}`), nil)
	black, _ := glasses.Model("rayban_display")
	sum := sha256.Sum256(render.PNG(render.Draw(black, glasses.View{Focus: -1})))
	wantStep(t, p, &scenario.ExpectDisplay{Picture: hex.EncodeToString(sum[:])})
	wantStep(t, playing(t, "rayban_display", ""), &scenario.ExpectDisplay{Picture: hex.EncodeToString(sum[:])})
}

func TestPreview_ShowsTheTreeOnEveryModel(t *testing.T) {
	display := `{"tree":{"type":"column","overflow":"scroll","children":[{"type":"text","colour":"#31a2f2","text":"Three"},
		{"type":"button","id":"a","text":"First"},{"type":"button","id":"b","text":"Second"},
		{"type":"icon","icon":"star","width":500,"height":500},{"type":"button","id":"c","text":"Third"}]}}`
	p := playing(t, "rayban_display", display)
	for range 2 {
		p.dev.Control(0, glasses.SimInput, []byte(`{"kind":"navigate","direction":"down"}`), nil)
	}
	if now := p.dev.Snapshot().View; now.Focus != 2 || now.Scroll == 0 {
		t.Fatalf("got the view %+v, want the third button in sight", now)
	}
	for _, m := range glasses.Models() {
		got, ok := p.preview(m.ID)
		if ok != (m.Panel != nil) {
			t.Errorf("%s: got a preview: %v", m.ID, ok)
		}
		if !ok {
			continue
		}
		tree := p.dev.Snapshot().View.Tree
		want := glasses.View{Tree: tree} // as after display.show
		if m.MoveKind() != "" {
			for range 2 {
				want = render.Navigate(m, want, "down")
			}
		}
		if !bytes.Equal(got.img.Pix, render.Draw(m, want).Pix) {
			t.Errorf("%s: the picture differs from the one that a wearer with the same focus sees", m.ID)
		}
		if diff := cmp.Diff(append([]glasses.Finding{}, render.Fit(m, want)...), got.Findings); diff != "" {
			t.Errorf("%s: findings: %s", m.ID, diff)
		}
		if isTwo := got.Pages > 1; !isTwo {
			t.Errorf("%s: got %d pages, want more", m.ID, got.Pages)
		}
		if lost := len(got.Colours) == 1; lost != (m.Panel.Colour == glasses.ColourGreen) {
			t.Errorf("%s: got the lost colours %v", m.ID, got.Colours)
		}
	}
	if _, ok := playing(t, "rayban_display", "").preview("even_g1"); ok {
		t.Error("a clear panel has a preview")
	}
}

func TestSnapshotPlayer_ShowsThePanel(t *testing.T) {
	p := playing(t, "even_g1", oneText)
	data, err := json.Marshal(p.dev.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	past, err := snapshotPlayer(string(data))
	if err != nil || !bytes.Equal(render.Draw(past.dev.Model(), past.seen()).Pix, render.Draw(p.dev.Model(), p.seen()).Pix) {
		t.Errorf("the picture of a snapshot differs from the panel, error %v", err)
	}
	for _, bad := range []string{"", "{", `{"deviceModel":"none"}`} {
		if _, err := snapshotPlayer(bad); err == nil {
			t.Errorf("snapshot %q: got no error", bad)
		}
	}
}
