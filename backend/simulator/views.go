package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"image"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// preview shows the tree on the panel as a model would show it, and the parts that do not fit.
type preview struct {
	img *image.NRGBA

	// Pages is the number of pages, or heights of the panel, that the wearer scrolls through.
	Pages    int               `json:"pages"`
	Findings []glasses.Finding `json:"findings"`
	// Colours are the colours that this panel shows differently.
	Colours []string `json:"colours"`
}

// preview returns the preview on the model with this ID. ok is false if the panel is clear or the model has no panel.
func (p *player) preview(id string) (v preview, ok bool) {
	m, ok := glasses.Model(id)
	now := p.dev.Snapshot().View
	if !ok || m.Panel == nil || now.Tree == nil {
		return preview{}, false
	}
	view := now
	if id != p.dev.Model().ID {
		view = viewOn(m, now)
	}
	return preview{img: render.Draw(m, view), Pages: render.Pages(m, view),
		Findings: append([]glasses.Finding{}, render.Fit(m, view)...),
		Colours:  append([]string{}, render.LostColours(m, view.Tree)...)}, true
}

// viewOn returns the view of the same tree on another model. It keeps the focus if the wearer of that model can move it
// there.
func viewOn(m glasses.DeviceModel, v glasses.View) glasses.View {
	tree := *v.Tree
	if targets := tree.Targets(); m.MoveKind() != "" && v.Focus >= 0 && v.Focus < len(targets) {
		tree.Focus = targets[v.Focus].ID
	}
	return render.Show(m, glasses.View{Focus: -1}, &tree)
}

// step is a step of a scenario that expects what the wearer sees. It is defined in glasses/scenario; importing that
// package would make the program a fifth larger.
type step struct {
	ExpectDisplay expectDisplay `json:"expectDisplay"`
}

type expectDisplay struct {
	Text    []string `json:"text,omitempty"`
	InOrder bool     `json:"inOrder,omitempty"`
	Images  []string `json:"images,omitempty"`
	Focus   string   `json:"focus,omitempty"`
	Picture string   `json:"picture,omitempty"`

	Progress map[string]int `json:"progress,omitempty"`
}

// step returns a step that expects the completely visible texts, images, icons and progress bars, and the focus. If
// there are none, the step expects the picture.
func (p *player) step() step {
	s, m := p.dev.Snapshot(), p.dev.Model()
	var e expectDisplay
	if !s.State.IsDark() {
		e = seenOn(m, s.View)
	}
	if len(e.Text)+len(e.Images)+len(e.Progress) == 0 && e.Focus == "" {
		sum := sha256.Sum256(render.PNG(render.Draw(m, s.State.Seen(s.View))))
		e.Picture = hex.EncodeToString(sum[:])
	}
	return step{e}
}

func seenOn(m glasses.DeviceModel, v glasses.View) (e expectDisplay) {
	shown := render.Inspect(m, v)
	for _, t := range shown.Texts {
		if t.Visible == render.VisibleFull {
			e.Text = append(e.Text, t.Text)
		}
	}
	e.InOrder = len(e.Text) > 1
	for _, g := range shown.Graphics {
		name := cmp.Or(g.Name, g.ID)
		switch {
		case g.Visible != render.VisibleFull || name == "":
		case g.Type == glasses.NodeProgress:
			if e.Progress == nil {
				e.Progress = map[string]int{}
			}
			e.Progress[name] = g.Value
		case g.Type == glasses.NodeImage || g.Type == glasses.NodeIcon:
			e.Images = append(e.Images, name)
		}
	}
	if v.Focus >= 0 && v.Focus < len(shown.Targets) {
		e.Focus = shown.Targets[v.Focus].ID
	}
	return e
}
