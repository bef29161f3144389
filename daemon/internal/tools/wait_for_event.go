package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
)

type waitForEvent struct {
	sessionGate
	notes Scenarios
}

type waitForEventArgs struct {
	sessionArg
	Type           string          `json:"type"`
	Kind           string          `json:"kind" jsonschema:"request: a command of the app."`
	Chip           string          `json:"chip"`
	Sender         string          `json:"sender"`
	Payload        json.RawMessage `json:"payload"`
	Since          *integer        `json:"since"`
	TimeoutSeconds *integer        `json:"timeoutSeconds"`
}

type waitAnswer struct {
	Status    string            `json:"status"`
	SessionID string            `json:"sessionId"`
	Event     json.RawMessage   `json:"event,omitempty"`
	Next      int64             `json:"next" jsonschema:"Pass it as since to wait for the next row."`
	Looked    int               `json:"looked" jsonschema:"The number of checked rows."`
	Truncated bool              `json:"truncated,omitempty"`
	Last      []json.RawMessage `json:"last,omitempty" jsonschema:"With timeout: the latest rows, which did not match."`
	Summary   string            `json:"summary"`
}

// Limits of a wait, in seconds. Some clients abort a call after 60 s unless it reports progress.
const (
	waitDefault = 30
	waitQuiet   = 50
	waitLong    = 600
	// waitStep is the maximum duration of a single wait. Progress is reported between waits.
	waitStep = 20 * time.Second
	// waitPause is the minimum time between two waits that return no rows.
	waitPause = time.Second
	lastRows  = 5
)

func (t waitForEvent) definition() definition {
	return define(Tool{
		Name: "waitForEvent", Title: "Wait for an event log entry",
		Waits:       true,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		OutputSchema: gatedAnswersOf[waitAnswer]([]string{"found", "timeout"},
			on("event", says("The row: seq, at, kind, chip, type, id, sender, payload.")),
			on("truncated", says("Rows after since were deleted before the check: the log keeps only the latest.")),
		),
	}, t.run,
		on("type", says("Such as display.show, input or app.attached.")),
		on("kind", oneOf("request", "result", "event")),
		on("chip", oneOf(glasses.Chips()...)),
		on("sender", oneOf("app", "glasses", "service")),
		on("payload", says("Fields that it must have, e.g. {\"target\":\"done\"}.")),
		on("timeoutSeconds", byDefault(waitDefault), says("1 to 50; up to 600 with progress.")),
	)
}

func (t waitForEvent) run(ctx context.Context, c call, args waitForEventArgs) (any, error) {
	filter, err := filterOf(args)
	if err != nil {
		return nil, err
	}
	most := int64(waitQuiet)
	if c.io.Progress != nil {
		most = waitLong
	}
	wait := time.Duration(clamp(args.TimeoutSeconds, waitDefault, 1, most)) * time.Second
	return t.onSession(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		since := clamp(args.Since, t.cursors.get(id), 0, 1<<53)
		answer, err := t.wait(ctx, c.io, target, id, since, wait, filter)
		if found, ok := answer.(waitAnswer); ok && err == nil && found.Status == "found" {
			t.noteClaim(ctx, target, id, args.Payload, found.Event)
		}
		return answer, err
	})
}

// noteClaim records for a recording that a row was seen. It ignores rows from the service, because apps do not cause
// them.
func (t waitForEvent) noteClaim(ctx context.Context, target backend.Target, id string, payload, row json.RawMessage) {
	var e glasses.Event
	if json.Unmarshal(row, &e) != nil || e.Sender == glasses.SenderService {
		return
	}
	if string(payload) == "null" {
		payload = nil
	}
	t.notes.Note(ctx, target, id, scenario.Step{Expect: &scenario.Expect{Type: e.Type, Kind: e.Kind, Payload: payload}},
		e.Seq, e.At)
}

func (t waitForEvent) wait(ctx context.Context, io IO, target backend.Target, id string, since int64,
	wait time.Duration, filter rowFilter) (any, error) {
	answer := waitAnswer{Status: "timeout", SessionID: id, Next: since}
	progress, end := newProgress(io, wait), time.Now().Add(wait)
	for {
		asked := time.Now()
		page, err := t.sessions.Wait(ctx, target, id, answer.Next, 0, min(time.Until(end), waitStep))
		if err != nil {
			return nil, err
		}
		if len(page.Events) == 0 && time.Since(asked) < waitPause { // returned immediately, e.g. for an expired session
			select {
			case <-time.After(min(time.Until(end), waitPause)):
			case <-ctx.Done():
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		answer.Truncated = answer.Truncated || page.Truncated
		for _, row := range page.Events {
			answer.Looked++
			if seq, ok := filter.fits(row); ok {
				answer.Status, answer.Event, answer.Next, answer.Last = "found", row, seq, nil
				answer.Summary = fmt.Sprintf("Row %d of session %s matches%s.", seq, id, filter.words)
				return answer, nil
			}
			if answer.Last = append(answer.Last, row); len(answer.Last) > lastRows {
				answer.Last = answer.Last[1:]
			}
		}
		answer.Next = max(answer.Next, page.Next)
		if page.Truncated && len(page.Events) == 0 {
			answer.Summary = fmt.Sprintf("The event log of session %s was deleted: the session was closed, or nobody used it "+
				"for a long time. No row will come.", id)
			return answer, nil
		}
		if !page.More && !time.Now().Before(end) {
			answer.Summary = fmt.Sprintf("No row after %d of session %s matches%s within %v; %d rows came. "+
				"Check last, the app's own output, and getSessionStatus; with a virtual clock call advanceTime.",
				since, id, filter.words, wait, answer.Looked)
			return answer, nil
		}
		if io.Progress != nil && len(page.Events) == 0 {
			progress.report(fmt.Sprintf("waiting for a row that matches%s", filter.words))
		}
	}
}

// rowFilter selects rows.
type rowFilter struct {
	args    waitForEventArgs
	payload any
	words   string
}

func filterOf(args waitForEventArgs) (rowFilter, error) {
	f := rowFilter{args: args}
	for _, w := range []struct {
		name, v string
		known   []string
	}{{"kind", args.Kind, []string{glasses.KindRequest, glasses.KindResult, glasses.KindEvent}}, {"chip", args.Chip,
		glasses.Chips()},
		{"sender", args.Sender, []string{glasses.SenderApp, glasses.SenderGlasses, glasses.SenderService}}, {"type",
			args.Type, nil}} {
		if w.v == "" {
			continue
		}
		if w.known != nil && !slices.Contains(w.known, w.v) {
			return f, notOneOf(w.name, w.known)
		}
		f.words += fmt.Sprintf(" %s %s", w.name, clip(w.v))
	}
	if why := glasses.NeverMatches(args.Type, args.Kind, args.Chip, args.Sender); why != "" {
		return f, invalid("no entry of the event log can match: "+why, "Leave out one of the filters.")
	}
	if len(args.Payload) > 0 && string(args.Payload) != "null" {
		if json.Unmarshal(args.Payload, &f.payload) != nil || args.Payload[0] != '{' {
			return f, invalid("payload must be an object", `Pass the fields that the row's payload must have, e.g. `+
				`{"target":"done"}.`)
		}
		f.words += " payload " + clip(string(args.Payload))
	}
	return f, nil
}

func (f rowFilter) fits(raw json.RawMessage) (seq int64, ok bool) {
	var row glasses.Event
	if json.Unmarshal(raw, &row) != nil {
		return 0, false
	}
	for _, w := range [][2]string{{f.args.Type, row.Type}, {f.args.Kind, row.Kind}, {f.args.Chip, row.Chip},
		{f.args.Sender, row.Sender}} {
		if w[0] != "" && w[0] != w[1] {
			return row.Seq, false
		}
	}
	if f.payload == nil {
		return row.Seq, true
	}
	var payload any
	return row.Seq, json.Unmarshal(row.Payload, &payload) == nil && subset(f.payload, payload)
}

// subset reports whether got contains every field of want. Values other than objects must be equal.
func subset(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		for name, v := range w {
			if other, there := g[name]; !there || !subset(v, other) {
				return false
			}
		}
		return ok
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(w, g, subset)
	default:
		return want == got
	}
}
