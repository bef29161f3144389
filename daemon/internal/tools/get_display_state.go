package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

type getDisplayState struct {
	sessionGate
}

type getDisplayStateArgs struct {
	sessionArg
	Picture *bool    `json:"picture" jsonschema:"false: omit the image."`
	Models  []string `json:"models" jsonschema:"Also draw the tree on these; [\"all\"]: on every model."`
}

// displayTarget is an element that the wearer can tap or select.
type displayTarget struct {
	ID      string `json:"id"`
	Focused bool   `json:"focused"`
	Visible string `json:"visible"`
	X       int    `json:"x"`
	Y       int    `json:"y"`
	Width   int    `json:"width"`
	Height  int    `json:"height"`
}

// hiddenText is a text that the wearer cannot read in full.
type hiddenText struct {
	ID      string `json:"id,omitempty"`
	Path    string `json:"path"`
	Text    string `json:"text"`
	Visible string `json:"visible"` // partial or none
	Missing string `json:"missing,omitempty"`
}

// displayImage is an image in the tree.
type displayImage struct {
	ID      string `json:"id,omitempty"`
	Path    string `json:"path"`
	Alt     string `json:"alt"`
	Visible string `json:"visible"`
}

// displayGraphic is an icon or a progress bar in the tree.
type displayGraphic struct {
	Type    string `json:"type"`
	ID      string `json:"id,omitempty"`
	Path    string `json:"path"`
	Name    string `json:"name,omitempty"`
	Value   *int   `json:"value,omitempty"`
	Visible string `json:"visible"`
}

// modelDisplay is the tree's initial view on another model.
type modelDisplay struct {
	DeviceModel string            `json:"deviceModel"`
	Text        []string          `json:"text"`
	Findings    []glasses.Finding `json:"findings"`
}

// pictureFacts describes the PNG of the picture that accompanies the answer, even if Bounded converts the picture to
// JPEG or omits it. expectDisplay and scenarios compare the PNG's hash.
type pictureFacts struct {
	MIME   string `json:"mime"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	SHA256 string `json:"sha256"`
}

type displayAnswer struct {
	Status      string           `json:"status"`
	SessionID   string           `json:"sessionId"`
	DeviceModel string           `json:"deviceModel"`
	Tree        *glasses.Node    `json:"tree"`
	Text        []string         `json:"text"`
	OffScreen   []hiddenText     `json:"offScreen"`
	Images      []displayImage   `json:"images"`
	Graphics    []displayGraphic `json:"graphics"`
	Scroll      int              `json:"scroll" jsonschema:"How far the content is scrolled up, in panel pixels."`
	Targets     []displayTarget  `json:"targets"`

	Findings     []glasses.Finding `json:"findings"`
	MoreFindings int               `json:"moreFindings,omitempty"`
	Models       []modelDisplay    `json:"models,omitempty"`

	State   glasses.State `json:"state"`
	Picture *pictureFacts `json:"picture" jsonschema:"null: the model has no display."`
	Summary string        `json:"summary"`

	image []byte
}

func (a displayAnswer) images() []Image {
	if a.image == nil {
		return nil
	}
	return []Image{{MIME: "image/png", Data: a.image}}
}

var pictureHash = on("picture.sha256",
	says("Of the PNG; the same for the same screen and model on every transport."))

func (t getDisplayState) definition() definition {
	return define(Tool{
		Name: "getDisplayState", Title: "See what the wearer sees",
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		Pictures:    true,
		OutputSchema: gatedAnswersOf[displayAnswer]([]string{"ok"},
			on("tree", says("What the app shows; null: the panel is clear. Long image data is omitted.")),
			on("text", says("The texts that the wearer can read in full, in reading order; none while folded or not worn.")),
			on("graphics", says("Icons and progress bars of the tree.")),
			on("offScreen", says("Texts of the tree that are clipped, scrolled out or covered, or have missing characters.")),
			on("findings", says("Content that never fits this model.")),
			on("models", says("The tree on the requested models.")),
			on("targets", says("Buttons and list entries on the panel, in drawing order; tap inside one, or select the "+
				"focused one.")),
			on("state.running", says("Running streams.")),
			on("state.phrases", says("The phrases that the app announced.")),
			on("state.faults", opaque, says("Faults waiting for a command.")),
			pictureHash,
		),
	}, t.run,
		on("picture", byDefault(true)),
	)
}

func (t getDisplayState) run(ctx context.Context, c call, args getDisplayStateArgs) (any, error) {
	models, err := modelsOf(args.Models)
	if err != nil {
		return nil, err
	}
	return t.onSession(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		d, err := t.sessions.Display(ctx, target, id)
		if err != nil {
			return nil, controlProblem(err)
		}
		answer := displayOf(id, d)
		if why := d.UnconfirmedReason(); why != "" {
			answer.Summary += fmt.Sprintf(" The glasses have not confirmed that they show it: %s.", why)
		}
		if len(args.Models) > 0 {
			answer.showOn(d, models)
		}
		if args.Picture != nil && !*args.Picture {
			answer.image = nil
		}
		return answer, nil
	})
}

// modelsOf returns the models with these IDs, which must have a panel. The ID "all" means every model with a panel.
func modelsOf(ids []string) ([]glasses.DeviceModel, error) {
	var list []glasses.DeviceModel
	for _, id := range ids {
		if m, ok := glasses.Model(id); id != "all" && (!ok || m.Panel == nil) {
			return nil, invalid(fmt.Sprintf("%q in models is not a device model with a display", id),
				`Pass ["all"], or ids from getPlatformInfo.`)
		}
	}
	for _, m := range glasses.Models() {
		if m.Panel != nil && (slices.Contains(ids, "all") || slices.Contains(ids, m.ID)) {
			list = append(list, m)
		}
	}
	return list, nil
}

// showOn adds the tree's views on other models, and a contact sheet of them as the picture.
func (a *displayAnswer) showOn(d session.Display, models []glasses.DeviceModel) {
	a.Models = []modelDisplay{}
	misfits, models := 0, d.On(models)
	for _, m := range models {
		other := session.NewDisplay(m, glasses.FreshState(), render.Clamp(m, glasses.View{Tree: d.View.Tree}))
		found := orEmpty(other.Findings())
		misfits += len(found)
		a.Models = append(a.Models, modelDisplay{m.ID, other.Text(), found[:min(len(found), glasses.MaxFindings)]})
	}
	sheet := render.Sheet(models, d.View.Tree)
	a.image = render.PNG(sheet)
	a.Picture = factsOf(a.image, sheet.Rect.Dx(), sheet.Rect.Dy())
	a.Summary += fmt.Sprintf(" The picture is the tree on %d models; findings: %d.", len(models), misfits)
}

func displayOf(id string, d session.Display) displayAnswer {
	answer := displayAnswer{
		Status: "ok", SessionID: id, DeviceModel: d.Model.ID, Tree: d.View.Tree, Text: d.Text(),
		OffScreen: []hiddenText{}, Images: []displayImage{}, Graphics: []displayGraphic{}, Scroll: d.View.Scroll,
		Targets: []displayTarget{}, Findings: orEmpty(d.Findings()), State: d.State, Picture: pictureOf(d), image: d.PNG,
	}
	if more := len(answer.Findings) - glasses.MaxFindings; more > 0 {
		answer.Findings, answer.MoreFindings = answer.Findings[:glasses.MaxFindings], more
	}
	for _, t := range d.Shown.Texts {
		if t.Visible != render.VisibleFull {
			answer.OffScreen = append(answer.OffScreen, hiddenText{t.ID, t.Path, t.Text, t.Visible, t.Missing})
		}
	}
	for _, g := range d.Shown.Graphics {
		if g.Type == glasses.NodeImage {
			answer.Images = append(answer.Images, displayImage{g.ID, g.Path, g.Name, g.Visible})
			continue
		}
		one := displayGraphic{Type: g.Type, ID: g.ID, Path: g.Path, Name: g.Name, Visible: g.Visible}
		if g.Type == glasses.NodeProgress {
			one.Value = &g.Value
		}
		answer.Graphics = append(answer.Graphics, one)
	}
	for i, target := range d.Shown.Targets {
		r := target.Rect
		answer.Targets = append(answer.Targets, displayTarget{target.ID, i == d.View.Focus, target.Visible, r.Min.X,
			r.Min.Y, r.Dx(), r.Dy()})
	}
	answer.Summary = displayWordsOf(answer, d)
	return answer
}

func displayWordsOf(a displayAnswer, d session.Display) string {
	switch {
	case d.Model.Panel == nil:
		return fmt.Sprintf("%s has no display; see state.", d.Model.ID)
	case d.DarkReason() != "":
		return fmt.Sprintf("The wearer sees nothing: %s.", d.DarkReason())
	case d.View.Tree == nil:
		return fmt.Sprintf("The panel of %s is clear.", d.Model.ID)
	}
	words := fmt.Sprintf("The panel of %s shows: %s.", d.Model.ID, cut(strings.Join(a.Text, " | "), 300))
	for _, target := range a.Targets {
		if target.Focused {
			words += fmt.Sprintf(" The focus is on %q.", target.ID)
		}
	}
	if len(a.OffScreen) > 0 {
		words += fmt.Sprintf(" Not fully on the panel: %d texts, see offScreen.", len(a.OffScreen))
	}
	if len(a.Findings) > 0 {
		words += fmt.Sprintf(" Does not fit: %s", cut(a.Findings[0].Message(), 200))
		if more := len(a.Findings) + a.MoreFindings - 1; more > 0 {
			words += fmt.Sprintf(" and %d more", more)
		}
		words += "."
	}
	switch {
	case d.IsMissingAddedFont():
		words += " A font that the user added has the missing characters; " +
			"only local sessions (startLocalSimulation) use it."
	case session.IsLocal(a.SessionID) && hasMissingGlyph(a.Findings):
		words += " A font file that has the missing characters helps: `servicectl fonts add FILE`."
	}
	return words
}

func hasMissingGlyph(found []glasses.Finding) bool {
	return slices.ContainsFunc(found, func(f glasses.Finding) bool { return f.Kind == glasses.FindingMissingGlyph })
}

func pictureOf(d session.Display) *pictureFacts {
	if d.PNG == nil || d.Model.Panel == nil {
		return nil
	}
	return factsOf(d.PNG, d.Model.Panel.Width, d.Model.Panel.Height)
}

func factsOf(png []byte, width, height int) *pictureFacts {
	sum := sha256.Sum256(png)
	return &pictureFacts{MIME: "image/png", Width: width, Height: height, SHA256: hex.EncodeToString(sum[:])}
}
