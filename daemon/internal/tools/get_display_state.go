package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/render"
)

const getDisplayStateText = `Shows what the wearer of a session's glasses sees: the display tree, its text in reading order, where the focus is and what can be tapped, ` +
	`the state of the glasses (battery, worn, link, permissions, running streams, announced phrases), and the picture of the panel to the pixel as a PNG image. ` +
	`Use it to look at an app's screen. It changes nothing. To assert instead of looking use expectDisplay; to wait for a change use waitForEvent; ` +
	`for the glasses' model and the session use getSessionStatus. picture false leaves the image out; the command line writes it to a file (servicectl session picture).`

type getDisplayState struct {
	reach
	sessions displayReader
}

type displayReader interface {
	Display(ctx context.Context, target backend.Target, id string) (session.Display, error)
}

type getDisplayStateArgs struct {
	SessionID string `json:"sessionId"`
	Picture   *bool  `json:"picture"`
}

// displayTarget is what the wearer can tap or select.
type displayTarget struct {
	ID      string `json:"id"`
	Focused bool   `json:"focused"`
	X       int    `json:"x"`
	Y       int    `json:"y"`
	Width   int    `json:"width"`
	Height  int    `json:"height"`
}

// pictureFacts describe the picture beside the answer.
type pictureFacts struct {
	MIME   string `json:"mime"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	SHA256 string `json:"sha256"`
}

type displayAnswer struct {
	Status      string          `json:"status"`
	SessionID   string          `json:"sessionId"`
	DeviceModel string          `json:"deviceModel"`
	Tree        *glasses.Node   `json:"tree"`
	Text        []string        `json:"text"`
	Scroll      int             `json:"scroll"`
	Targets     []displayTarget `json:"targets"`
	State       glasses.State   `json:"state"`
	Picture     *pictureFacts   `json:"picture"`
	Summary     string          `json:"summary"`

	image []byte
}

func (a displayAnswer) images() []Image {
	if a.image == nil {
		return nil
	}
	return []Image{{MIME: "image/png", Data: a.image}}
}

const pictureSchema = `{"anyOf":[{"type":"object","properties":{
	"mime":{"type":"string"},"width":{"type":"integer"},"height":{"type":"integer"},
	"sha256":{"type":"string","description":"Of the PNG: the same screen on the same model has the same one, on every transport."}}},{"type":"null"}],"description":"null: the model has no display."}`

const stateSchema = `{"type":"object","properties":{
	"battery":{"type":"object","properties":{"level":{"type":"integer"},"charging":{"type":"boolean"}}},
	"worn":{"type":"boolean"},"hinge":{"type":"string"},"thermal":{"type":"string"},"link":{"type":"string"},"route":{"type":"string"},"call":{"type":"boolean"},
	"permissions":{"type":"object","additionalProperties":{"type":"string"}},"disabled":{"type":"array","items":{"type":"string"}},
	"running":{"type":"array","items":{"type":"string"},"description":"Streams that run."},
	"phrases":{"type":"array","items":{"type":"string"},"description":"What the app announced."},
	"faults":{"type":"array","items":{"type":"object"},"description":"Faults that wait for a command."}}}`

func (t getDisplayState) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getDisplayState", Title: "See what the wearer sees", Description: getDisplayStateText,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		Pictures:    true,
		InputSchema: inputSchema(sessionArgument+`,
			"picture":{"type":"boolean","default":true,"description":"false: the answer has no image."}`, ""),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","ok"]},
			"sessionId":{"type":"string"},
			"deviceModel":{"type":"string"},
			"tree":{"anyOf":[{"type":"object"},{"type":"null"}],"description":"What the app shows; null: the panel is clear. Long image data is left out."},
			"text":{"type":"array","items":{"type":"string"},"description":"What can be read, in reading order, whether it is scrolled to or not."},
			"scroll":{"type":"integer","description":"Panel pixels that the content has moved up."},
			"targets":{"type":"array","items":{"type":"object","properties":{
				"id":{"type":"string"},"focused":{"type":"boolean"},"x":{"type":"integer"},"y":{"type":"integer"},"width":{"type":"integer"},"height":{"type":"integer"}}},
				"description":"Buttons and list entries on the panel, in drawing order; tap within, or select the focused one."},
			"state":`+stateSchema+`,
			"picture":`+pictureSchema+`,`+summaryProperty, `"status","summary"`, true),
	}}
}

func (t getDisplayState) run(ctx context.Context, c call) (any, error) {
	var args getDisplayStateArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	return t.reach.run(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		d, err := t.sessions.Display(ctx, target, id)
		if err != nil {
			return nil, controlProblem(err)
		}
		answer := displayOf(id, d)
		if args.Picture != nil && !*args.Picture {
			answer.image = nil
		}
		return answer, nil
	})
}

func displayOf(id string, d session.Display) displayAnswer {
	answer := displayAnswer{
		Status: "ok", SessionID: id, DeviceModel: d.Model.ID, Tree: withoutData(d.View.Tree), Text: d.Text, Scroll: d.View.Scroll,
		Targets: []displayTarget{}, State: d.State, Picture: pictureOf(d), image: d.PNG,
	}
	if answer.Text == nil {
		answer.Text = []string{}
	}
	if d.Model.Panel != nil && d.View.Tree != nil {
		for i, target := range render.Targets(d.Model, d.View) {
			r := target.Rect
			answer.Targets = append(answer.Targets, displayTarget{target.ID, i == d.View.Focus, r.Min.X, r.Min.Y, r.Dx(), r.Dy()})
		}
	}
	answer.Summary = displayWordsOf(answer, d)
	return answer
}

func displayWordsOf(a displayAnswer, d session.Display) string {
	switch {
	case d.Model.Panel == nil:
		return fmt.Sprintf("%s has no display; state tells of the rest.", d.Model.ID)
	case d.View.Tree == nil:
		return fmt.Sprintf("The panel of %s is clear.", d.Model.ID)
	}
	words := fmt.Sprintf("The panel of %s shows: %s.", d.Model.ID, clipWords(strings.Join(a.Text, " | "), 300))
	for _, target := range a.Targets {
		if target.Focused {
			words += fmt.Sprintf(" The focus is on %q.", target.ID)
		}
	}
	return words
}

func clipWords(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}

func pictureOf(d session.Display) *pictureFacts {
	if d.PNG == nil || d.Model.Panel == nil {
		return nil
	}
	sum := sha256.Sum256(d.PNG)
	return &pictureFacts{MIME: "image/png", Width: d.Model.Panel.Width, Height: d.Model.Panel.Height, SHA256: hex.EncodeToString(sum[:])}
}

// maxShownData is how much base64 of an image in a tree an agent is shown.
const maxShownData = 100

// withoutData is a copy of a tree without long image data, which costs an agent much and tells it nothing.
func withoutData(tree *glasses.Node) *glasses.Node {
	if tree == nil {
		return nil
	}
	data, err := json.Marshal(tree)
	var clone glasses.Node
	if err != nil || json.Unmarshal(data, &clone) != nil {
		return tree
	}
	shorten(&clone)
	return &clone
}

func shorten(n *glasses.Node) {
	if len(n.Data) > maxShownData {
		n.Data = fmt.Sprintf("%s... (%d characters)", n.Data[:20], len(n.Data))
	}
	for i := range n.Children {
		shorten(&n.Children[i])
	}
}
