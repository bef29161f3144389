package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	_ "github.com/service-dev/service/glasses/render/fonts/packs" // fonts for texts in every script
	"github.com/service-dev/service/glasses/scenario"
)

// Display describes what the wearer sees.
type Display struct {
	Model glasses.DeviceModel
	State glasses.State
	View  glasses.View
	// Shown describes how much of each text, target and graphic the wearer can see. It is empty while the glasses are
	// folded or not worn.
	Shown render.Inspection
	// Unconfirmed is the reason why the panel may not show View, as in glasses.Result.
	Unconfirmed string
	// Confirmed is the view that the panel shows while View is being transmitted, as in glasses.Result.
	Confirmed *glasses.View
	// PNG is the rendered panel; nil for a model without a panel, and in a Display from Look.
	PNG []byte
}

// NewDisplay returns what the wearer of glasses in this state sees. It contains no picture.
func NewDisplay(model glasses.DeviceModel, state glasses.State, view glasses.View) Display {
	d := Display{Model: model, State: state, View: view, Shown: render.Inspect(model, view)}
	if state.IsDark() {
		d.Shown.Hide()
	}
	return d
}

// Picture renders the panel as PNG. The panel is black while the glasses are folded or not worn. It returns nil for a
// model without a panel. Rendering takes several milliseconds.
func (d Display) Picture() []byte {
	if d.Model.Panel == nil {
		return nil
	}
	return render.PNG(render.Draw(d.Model, d.State.Seen(d.View)))
}

// Text returns the texts that the wearer can read in full, in reading order.
func (d Display) Text() []string {
	list := []string{}
	for _, t := range d.Shown.Texts {
		if t.Visible == render.VisibleFull {
			list = append(list, t.Text)
		}
	}
	return list
}

// Findings returns the parts of the tree that do not fit the model.
func (d Display) Findings() []glasses.Finding { return render.Fit(d.Model, d.View) }

// Focus returns the ID of the focused target. It returns "" if no target is focused or the target has no ID.
func (d Display) Focus() string {
	if d.View.Focus < 0 || d.View.Focus >= len(d.Shown.Targets) {
		return ""
	}
	return d.Shown.Targets[d.View.Focus].ID
}

// DarkReason returns the reason why the wearer cannot see the panel, or "" if it is visible.
func (d Display) DarkReason() string {
	switch {
	case d.State.Hinge == glasses.HingeFolded:
		return "the glasses are folded"
	case d.State.IsDark():
		return "the glasses are not worn"
	}
	return ""
}

// UnconfirmedReason returns the reason why the wearer may see a view other than View. It returns "" if the glasses
// confirmed View or the wearer cannot see the panel anyway.
func (d Display) UnconfirmedReason() string {
	if d.DarkReason() != "" {
		return ""
	}
	return d.Unconfirmed
}

// LookAgain returns when to read the display again if no row is written. It is needed because glasses may confirm a
// picture without a row.
func (d Display) LookAgain() time.Duration {
	if d.UnconfirmedReason() != "" {
		return 200 * time.Millisecond
	}
	return time.Hour
}

// DefaultWithin returns how long, in ms, to wait for this display to meet an expectation without withinMs. This is ms
// or, while the picture is not confirmed, at least the time for two pictures, because one may have to wait for another.
func (d Display) DefaultWithin(ms int64) int64 {
	if d.Model.Panel == nil || d.UnconfirmedReason() == "" {
		return ms
	}
	return max(ms, 2*d.Model.Panel.FullMs)
}

// Unmet describes the unmet parts of an expectation, one sentence each. Tools and the steps of scenarios share it.
// While a picture is being transmitted, the previous picture must meet the expectation as well, because an app may
// redraw faster than its panel, which then never shows the latest view.
func (d Display) Unmet(e scenario.ExpectDisplay) []string {
	var unmet []string
	rule := textRule{parts: e.Contains || e.Loose, partial: e.AllowPartial}
	miss := func(format string, a ...any) { unmet = append(unmet, fmt.Sprintf(format, a...)) }
	if why := d.UnconfirmedReason(); why != "" && !d.confirmedMeets(e) {
		miss("the glasses have not confirmed what they show: %s", why)
	}
	for _, want := range e.Text {
		if !slices.ContainsFunc(d.Shown.Texts, func(t render.Text) bool { return canRead(t, want, rule) }) {
			miss("%q %s", want, d.whyUnread(want, rule))
		}
	}
	if e.InOrder && len(unmet) == 0 {
		if why := d.outOfOrder(e.Text, rule); why != "" {
			miss("%s", why)
		}
	}
	for _, unwanted := range e.Absent {
		for _, t := range d.Shown.Texts {
			if canRead(t, unwanted, textRule{parts: true, partial: e.AllowPartial}) {
				miss("%q can be seen in the text %q", unwanted, short(t.Text))
				break
			}
		}
		if d.hasImage(unwanted, e.Loose, e.AllowPartial || !e.Loose) || !e.Loose && d.hasProgress(unwanted) {
			miss("%q can be seen", unwanted)
		}
	}
	for _, want := range e.Images {
		if !d.hasImage(want, e.Loose, e.AllowPartial) {
			miss("no image or icon %q can be seen: %s", want, d.graphicsInWords())
		}
	}
	for _, id := range slices.Sorted(maps.Keys(e.Progress)) {
		if !slices.ContainsFunc(d.Shown.Graphics, func(g render.Graphic) bool {
			return g.Type == glasses.NodeProgress && g.ID == id && int64(g.Value) == e.Progress[id] &&
				isSeen(g, e.AllowPartial)
		}) {
			miss("no progress bar %q with the value %d can be seen: %s", id, e.Progress[id], d.graphicsInWords())
		}
	}
	if e.Focus != nil && *e.Focus != d.Focus() {
		miss("the focus is on %q, not on %q", d.Focus(), *e.Focus)
	}
	if e.Picture != "" && !strings.EqualFold(e.Picture, d.pictureHash()) {
		miss("the picture is %s, not %s", d.pictureHash(), e.Picture)
	}
	return unmet
}

// confirmedMeets reports whether the panel certainly shows a view that meets an expectation.
func (d Display) confirmedMeets(e scenario.ExpectDisplay) bool {
	return d.Confirmed != nil && len(NewDisplay(d.Model, d.State, *d.Confirmed).Unmet(e)) == 0
}

// textRule says which text of a node meets an expectation: only the whole text, or also its parts. Each line must be
// visible in full or, if partial is set, with at least one pixel.
type textRule struct{ parts, partial bool }

// legible returns what the wearer can read of a text.
func (r textRule) legible(t render.Text) string {
	switch {
	case t.Visible == render.VisibleNone:
		return ""
	case r.partial:
		return t.Seen
	}
	return t.Whole
}

// canRead reports whether the wearer can read want as the text of a node.
func canRead(t render.Text, want string, rule textRule) bool {
	legible := rule.legible(t)
	if rule.parts {
		return legible != "" && strings.Contains(legible, want)
	}
	return t.Text == want && legible != "" && strings.Contains(legible, strings.TrimSpace(want))
}

// outOfOrder returns the message for readable texts that are not in reading order, or "".
func (d Display) outOfOrder(wanted []string, rule textRule) string {
	var legible []string
	for _, t := range d.Shown.Texts {
		switch text := rule.legible(t); {
		case text == "":
		case rule.parts:
			legible = append(legible, text)
		case canRead(t, t.Text, rule):
			legible = append(legible, t.Text)
		}
	}
	places := make([]string, len(legible))
	for i, text := range legible {
		places[i] = fmt.Sprintf("%d. %q", i+1, text)
	}
	for i, want := range wanted {
		for len(legible) > 0 && legible[0] != want && (!rule.parts || !strings.Contains(legible[0], want)) {
			legible = legible[1:]
		}
		if len(legible) == 0 {
			return fmt.Sprintf("%q does not come after %q; from top to bottom: %s", want, wanted[max(i-1, 0)],
				short(strings.Join(places, ", ")))
		}
		legible = slices.Clone(legible)
		legible[0] = legible[0][strings.Index(legible[0], want)+len(want):] // a text may contain two wanted texts
	}
	return ""
}

// whyUnread explains why the wearer cannot read want. A node whose whole text it is says more than one that contains
// it.
func (d Display) whyUnread(want string, rule textRule) string {
	const unread = "cannot be read: "
	texts := slices.SortedStableFunc(slices.Values(d.Shown.Texts), func(a, b render.Text) int {
		return cmp.Compare(len(a.Text), len(b.Text))
	})
	for _, t := range texts {
		switch {
		case !strings.Contains(t.Text, want):
		case t.Text != want && canRead(t, want, textRule{parts: true, partial: rule.partial}):
			return fmt.Sprintf("is only a part of the text %q; with contains: true, parts are enough", short(t.Text))
		case d.DarkReason() != "":
			return unread + d.DarkReason()
		case t.Missing != "" && !strings.Contains(t.Whole, want):
			return unread + "no font here has " + t.Missing
		case strings.Contains(t.Seen, want) && t.Visible != render.VisibleNone:
			return unread + "only part of it is on the panel"
		default:
			return unread + "the app shows it, but it is not on the panel: clipped, scrolled out, covered or too dark"
		}
	}
	if text := d.Text(); len(text) > 0 {
		return fmt.Sprintf("%sthe panel shows %q", unread, short(strings.Join(text, " / ")))
	}
	return unread + "the panel shows no text"
}

// hasImage reports whether the wearer sees an image or a known icon with this name or ID, in full or, if partial is
// set, in part. Scenarios of version 1 are loose.
func (d Display) hasImage(name string, loose, partial bool) bool {
	return slices.ContainsFunc(d.Shown.Graphics, func(g render.Graphic) bool {
		switch {
		case g.Name != name && g.ID != name:
			return false
		case g.Type == glasses.NodeImage:
			return isSeen(g, partial) || loose && g.Whole
		}
		isKnown := g.Type == glasses.NodeIcon && slices.Contains(render.Icons(), g.Name)
		return isKnown && !loose && isSeen(g, partial)
	})
}

// hasProgress reports whether the wearer sees any part of the progress bar with this ID.
func (d Display) hasProgress(id string) bool {
	return slices.ContainsFunc(d.Shown.Graphics, func(g render.Graphic) bool {
		return g.Type == glasses.NodeProgress && g.ID == id && isSeen(g, true)
	})
}

func isSeen(g render.Graphic, partial bool) bool {
	return g.Visible == render.VisibleFull || partial && g.Visible == render.VisiblePartial
}

func (d Display) graphicsInWords() string {
	if len(d.Shown.Graphics) == 0 {
		return "the tree has no image, icon or progress bar"
	}
	words := make([]string, len(d.Shown.Graphics))
	for i, g := range d.Shown.Graphics {
		words[i] = fmt.Sprintf("%s %q, id %q, visible %s", g.Type, g.Name, g.ID, g.Visible)
		if g.Type == glasses.NodeProgress {
			words[i] = fmt.Sprintf("progress %d, id %q, visible %s", g.Value, g.ID, g.Visible)
		}
	}
	return short(strings.Join(words, "; "))
}

// short shortens text for a message.
func short(text string) string {
	const most = 300
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

func (d Display) pictureHash() string {
	png := d.PNG
	if png == nil {
		png = d.Picture()
	}
	sum := sha256.Sum256(png)
	return hex.EncodeToString(sum[:])
}

// Misfits describes the parts of a tree that do not fit the models, one sentence each. If loose is set, icons and
// progress bars need not fit.
func Misfits(tree *glasses.Node, models []glasses.DeviceModel, loose bool) []string {
	var list []string
	for _, m := range models {
		for _, f := range render.Fit(m, render.Clamp(m, glasses.View{Tree: tree})) {
			if loose && f.Type != "" && f.Type != glasses.NodeImage {
				continue
			}
			list = append(list, m.ID+": "+f.Message())
		}
	}
	return list
}
