package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
)

const expectDisplayText = `Asserts what the wearer sees, and waits up to withinMs for it: every entry of text can be read on the display (each within one text), none of absent can, ` +
	`the focus is on the node focus, the picture has this SHA-256 (of getDisplayState). Answers status "pass", or "fail" with what is missing and the picture, which is no error. ` +
	`withinMs is on the session's clock: in virtual time the clock is advanced until it fits. ` +
	`Use it to prove that an app reacts, after an inject tool. To look without a claim use getDisplayState; to wait for a frame instead of a screen use waitForEvent; ` +
	`for a whole test that stays, recordSession and replaySession.`

type expectDisplay struct {
	reach
	sessions expecter
}

// expecter looks at a display and lets time pass until it may have changed.
type expecter interface {
	displayReader
	eventWaiter
	advancer
}

type expectDisplayArgs struct {
	SessionID string   `json:"sessionId"`
	Text      []string `json:"text"`
	Absent    []string `json:"absent"`
	Focus     *string  `json:"focus"`
	Picture   string   `json:"picture"`
	WithinMs  *integer `json:"withinMs"`
}

type expectAnswer struct {
	Status      string        `json:"status"`
	SessionID   string        `json:"sessionId"`
	DeviceModel string        `json:"deviceModel"`
	Missing     []string      `json:"missing"`
	Text        []string      `json:"text"`
	Focus       string        `json:"focus"`
	Picture     *pictureFacts `json:"picture"`
	Summary     string        `json:"summary"`

	image []byte
}

func (a expectAnswer) images() []Image {
	if a.image == nil || a.Status == "pass" {
		return nil
	}
	return []Image{{MIME: "image/png", Data: a.image}}
}

// Bounds of withinMs, and how much virtual time passes between two looks.
const (
	expectDefault = 5000
	expectMost    = 50_000
	expectStep    = 50
)

func (t expectDisplay) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "expectDisplay", Title: "Assert what the wearer sees", Description: expectDisplayText,
		Waits:    true,
		Pictures: true,
		InputSchema: inputSchema(sessionArgument+`,
			"text":{"type":"array","items":{"type":"string"},"description":"What must be readable, e.g. [\"Milk\",\"2 of 5\"]; case counts."},
			"absent":{"type":"array","items":{"type":"string"},"description":"What must not be readable."},
			"focus":{"type":"string","description":"Id of the node that has the focus; empty: none has."},
			"picture":{"type":"string","description":"SHA-256 of the picture, as getDisplayState tells it."},
			"withinMs":{"type":"integer","default":5000,"description":"How long to wait for it, 0 to 50000; other values are clamped."}`, ""),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","pass","fail"]},
			"sessionId":{"type":"string"},
			"deviceModel":{"type":"string"},
			"missing":{"type":"array","items":{"type":"string"},"description":"With fail: each claim that does not hold."},
			"text":{"type":"array","items":{"type":"string"},"description":"What can be read."},
			"focus":{"type":"string","description":"Id of the node that has the focus; empty: none."},
			"picture":`+pictureSchema+`,`+summaryProperty, `"status","summary"`, true),
	}}
}

func (t expectDisplay) run(ctx context.Context, c call) (any, error) {
	var args expectDisplayArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	if len(args.Text) == 0 && len(args.Absent) == 0 && args.Focus == nil && args.Picture == "" {
		return nil, &Error{Code: CodeInvalidArguments, Message: "nothing is expected", FixHint: `pass text, absent, focus or picture, e.g. {"text":["Hello"]}; getDisplayState only looks`}
	}
	within := clamp(args.WithinMs, expectDefault, 0, expectMost)
	return t.reach.run(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		s, err := t.reach.sessions.Get(ctx, target, id)
		if err != nil {
			return nil, err
		}
		answer, err := t.look(ctx, target, s, args, within)
		if err != nil {
			return nil, controlProblem(err)
		}
		return answer, nil
	})
}

// look looks again each time something may have changed, until it fits or the time is over.
func (t expectDisplay) look(ctx context.Context, target backend.Target, s backend.Session, args expectDisplayArgs, within int64) (expectAnswer, error) {
	since, left, end := s.LastSeq, within, time.Now().Add(time.Duration(within)*time.Millisecond)
	for {
		d, err := t.sessions.Display(ctx, target, s.SessionID)
		if err != nil {
			return expectAnswer{}, err
		}
		answer := verdictOf(s.SessionID, d, args)
		if answer.Status == "pass" {
			return answer, nil
		}
		if s.Clock == backend.ClockVirtual {
			if left <= 0 {
				return answer, nil
			}
			step := min(left, expectStep)
			if _, _, err := t.sessions.Advance(ctx, s.SessionID, step); err != nil {
				return expectAnswer{}, err
			}
			left -= step
			continue
		}
		if !time.Now().Before(end) {
			return answer, nil
		}
		page, err := t.sessions.Wait(ctx, target, s.SessionID, since, session.MaxLimit, time.Until(end))
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
	answer := expectAnswer{Status: "pass", SessionID: id, DeviceModel: d.Model.ID, Missing: []string{}, Text: shown.Text, Picture: shown.Picture, image: d.PNG}
	for _, target := range shown.Targets {
		if target.Focused {
			answer.Focus = target.ID
		}
	}
	readable := func(want string) bool {
		return slices.ContainsFunc(shown.Text, func(text string) bool { return strings.Contains(text, want) })
	}
	miss := func(format string, a ...any) { answer.Missing = append(answer.Missing, fmt.Sprintf(format, a...)) }
	for _, want := range args.Text {
		if !readable(want) {
			miss("%q cannot be read", want)
		}
	}
	for _, unwanted := range args.Absent {
		if readable(unwanted) {
			miss("%q can be read", unwanted)
		}
	}
	if args.Focus != nil && *args.Focus != answer.Focus {
		miss("the focus is on %q, not on %q", answer.Focus, *args.Focus)
	}
	if args.Picture != "" && (shown.Picture == nil || !strings.EqualFold(args.Picture, shown.Picture.SHA256)) {
		miss("the picture is another one")
	}
	answer.Summary = "It holds. " + shown.Summary
	if len(answer.Missing) > 0 {
		answer.Status, answer.Summary = "fail", "It does not hold: "+strings.Join(answer.Missing, "; ")+". "+shown.Summary
	}
	return answer
}
