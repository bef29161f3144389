package tools

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/strictjson"
)

type expectDisplay struct {
	sessionGate
	notes Scenarios
}

type expectDisplayArgs struct {
	sessionArg
	scenario.ExpectDisplay
}

func (expectDisplayArgs) rules() strictjson.Rules {
	rules := kindRules("expectDisplay", `{"text":["Hello"]}`)
	rules["withinMs"] = strictjson.Rule{What: "Default: 5000 or more.", Min: new(int64(0)), Max: new(int64(expectMost))}
	return rules
}

type expectAnswer struct {
	Status      string        `json:"status"`
	SessionID   string        `json:"sessionId"`
	DeviceModel string        `json:"deviceModel"`
	Missing     []string      `json:"missing" jsonschema:"With fail: each unmet expectation."`
	Text        []string      `json:"text" jsonschema:"The readable text."`
	Focus       string        `json:"focus" jsonschema:"Id of the focused node; empty: none."`
	Picture     *pictureFacts `json:"picture" jsonschema:"null: the model has no display."`
	Summary     string        `json:"summary"`

	image []byte
}

func (a expectAnswer) images() []Image {
	if a.image == nil || a.Status == "pass" {
		return nil
	}
	return []Image{{MIME: "image/png", Data: a.image}}
}

// Limits of withinMs, and the virtual time between two checks of the display.
const (
	expectDefault = 5000
	expectMost    = 50_000
	expectStep    = 50
)

func (t expectDisplay) definition() definition {
	return define(Tool{
		Name: "expectDisplay", Title: "Assert what the wearer sees",
		Waits:    true,
		Pictures: true,
		OutputSchema: gatedAnswersOf[expectAnswer]([]string{"pass", "fail"},
			pictureHash,
		),
	}, t.run)
}

func (t expectDisplay) run(ctx context.Context, c call, args expectDisplayArgs) (any, error) {
	if slices.Contains(slices.Concat(args.Text, args.Absent, args.Images), "") {
		return nil, invalid("an empty text is found everywhere", `Pass texts of at least one character.`)
	}
	if args.IsEmpty() {
		return nil, invalid("nothing is expected", `Pass text, absent, images, progress, focus or picture, e.g. `+
			`{"text":["Hello"]}; getDisplayState only looks.`)
	}
	return t.onSession(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		s, err := t.sessions.Get(ctx, target, id)
		if err != nil {
			return nil, err
		}
		answer, err := t.watch(ctx, target, s, args)
		if err != nil {
			return nil, controlProblem(err)
		}
		if answer.Status == "pass" {
			claim := args.ExpectDisplay
			claim.WithinMs = nil
			t.notes.Note(ctx, target, id, scenario.Step{ExpectDisplay: &claim}, 0, 0)
		}
		return answer, nil
	})
}

// watch checks the display each time it may have changed, until it matches or the time is up.
func (t expectDisplay) watch(ctx context.Context, target backend.Target, s backend.Session,
	args expectDisplayArgs) (expectAnswer, error) {
	since, advanced, began := s.LastSeq, int64(0), time.Now()
	for {
		d, err := t.sessions.Display(ctx, target, s.SessionID)
		if err != nil {
			return expectAnswer{}, err
		}
		answer := verdictOf(s.SessionID, d, args)
		if answer.Status == "pass" {
			return answer, nil
		}
		within := d.DefaultWithin(expectDefault)
		if args.WithinMs != nil {
			within = max(*args.WithinMs, 0)
		}
		within = min(within, expectMost)
		if s.Clock == backend.ClockVirtual {
			if advanced >= within {
				return answer, nil
			}
			step := min(within-advanced, expectStep)
			if _, _, err := t.sessions.Advance(ctx, s.SessionID, step); err != nil {
				return expectAnswer{}, err
			}
			advanced += step
			continue
		}
		left := time.Until(began.Add(time.Duration(within) * time.Millisecond))
		if left <= 0 {
			return answer, nil
		}
		wait := min(left, d.LookAgain())
		page, err := t.sessions.Wait(ctx, target, s.SessionID, since, session.MaxLimit, wait)
		if err != nil {
			return expectAnswer{}, err
		}
		if err := ctx.Err(); err != nil {
			return expectAnswer{}, err
		}
		since = max(since, page.Next)
	}
}

func verdictOf(id string, d session.Display, args expectDisplayArgs) expectAnswer {
	shown := displayOf(id, d)
	answer := expectAnswer{Status: "pass", SessionID: id, DeviceModel: d.Model.ID, Text: shown.Text, Focus: d.Focus(),
		Picture: shown.Picture, image: d.PNG}
	answer.Missing = orEmpty(d.Unmet(args.ExpectDisplay))
	answer.Summary = "As expected. " + shown.Summary
	if len(answer.Missing) > 0 {
		answer.Status, answer.Summary = "fail", "Not as expected: "+strings.Join(answer.Missing, "; ")+". "+shown.Summary
	}
	return answer
}
