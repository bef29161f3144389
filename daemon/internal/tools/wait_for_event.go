package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/glasses"
)

const waitForEventText = `Waits until a row that fits appears in a session's event log, and returns it: a command of the app (type display.show, kind request), its ` +
	`result, an event of the glasses, app.attached. All given filters must fit; payload is a subset, e.g. {"target":"done"}. ` +
	`Looks from since on; left out, from the last injection of these tools, else from the beginning, so a row that came in between is not missed. ` +
	`Use it after an inject tool, or to wait for the app to attach. When none came it answers status "timeout" with the last rows, which is no error. ` +
	`In virtual time only advanceTime lets time pass. To look at rows without waiting use getEventLog; to wait for what can be read on the panel use expectDisplay.`

type waitForEvent struct {
	reach
	sessions eventWaiter
}

type eventWaiter interface {
	Wait(ctx context.Context, target backend.Target, id string, since int64, limit int, wait time.Duration) (backend.EventPage, error)
}

type waitForEventArgs struct {
	SessionID      string          `json:"sessionId"`
	Type           string          `json:"type"`
	Kind           string          `json:"kind"`
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
	Next      int64             `json:"next"`
	Looked    int               `json:"looked"`
	Truncated bool              `json:"truncated,omitempty"`
	Last      []json.RawMessage `json:"last,omitempty"`
	Summary   string            `json:"summary"`
}

// Bounds of a wait in seconds. Some clients cut a call at 60 s unless it tells its progress.
const (
	waitDefault = 30
	waitQuiet   = 50
	waitLong    = 600
	// waitStep is how long one question to the session lasts; between two the caller hears that the call lives.
	waitStep = 20 * time.Second
	// waitPause is the least time between two questions that bring nothing.
	waitPause = time.Second
	lastRows  = 5
)

func (t waitForEvent) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "waitForEvent", Title: "Wait for a row of the event log", Description: waitForEventText,
		Waits:       true,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(sessionArgument+`,
			"type":{"type":"string","description":"Of the frame, e.g. display.show, input, app.attached, or a type of the app's own."},
			"kind":{"type":"string","enum":["request","result","event"],"description":"request: a command of the app."},
			"chip":{"type":"string","enum":[`+quoted(chips())+`]},
			"sender":{"type":"string","enum":["app","glasses","service"]},
			"payload":{"type":"object","description":"Fields that the row's payload must have, at any depth; a list fits when it is equal."},
			"since":{"type":"integer","description":"Only rows after this one; 0 is the beginning."},
			"timeoutSeconds":{"type":"integer","default":30,"description":"1 to 50, and up to 600 for a client that listens to progress; other values are clamped."}`, ""),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","found","timeout"]},
			"sessionId":{"type":"string"},
			"event":{"type":"object","description":"The row: seq, at, kind, chip, type, id, sender, payload."},
			"next":{"type":"integer","description":"Pass it as since to wait for the row after this one."},
			"looked":{"type":"integer","description":"How many rows were looked at."},
			"truncated":{"type":"boolean","description":"Rows after since are gone and were not looked at: the log keeps the latest ones."},
			"last":{"type":"array","items":{"type":"object"},"description":"With timeout: the last rows that did not fit."},`+summaryProperty, `"status","summary"`, true),
	}}
}

func chips() []string {
	return []string{glasses.ChipErrors, glasses.ChipVoice, glasses.ChipCamera, glasses.ChipDisplay, glasses.ChipLifecycle, glasses.ChipCustom}
}

func (t waitForEvent) run(ctx context.Context, c call) (any, error) {
	var args waitForEventArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	filter, err := filterOf(args)
	if err != nil {
		return nil, err
	}
	most := int64(waitQuiet)
	if c.io.Progress != nil {
		most = waitLong
	}
	wait := time.Duration(clamp(args.TimeoutSeconds, waitDefault, 1, most)) * time.Second
	return t.reach.run(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		since := clamp(args.Since, t.cursors.of(id), 0, 1<<53)
		return t.wait(ctx, c.io, target, id, since, wait, filter)
	})
}

func (t waitForEvent) wait(ctx context.Context, io IO, target backend.Target, id string, since int64, wait time.Duration, filter rowFilter) (any, error) {
	answer := waitAnswer{Status: "timeout", SessionID: id, Next: since}
	meter, end := newMeter(io, wait), time.Now().Add(wait)
	for {
		asked := time.Now()
		page, err := t.sessions.Wait(ctx, target, id, answer.Next, 0, min(time.Until(end), waitStep))
		if err != nil {
			return nil, err
		}
		if len(page.Events) == 0 && time.Since(asked) < waitPause { // it does not wait, e.g. because the session has expired
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
				answer.Summary = fmt.Sprintf("Row %d of session %s fits%s.", seq, id, filter.words)
				return answer, nil
			}
			if answer.Last = append(answer.Last, row); len(answer.Last) > lastRows {
				answer.Last = answer.Last[1:]
			}
		}
		answer.Next = max(answer.Next, page.Next)
		if page.Truncated && len(page.Events) == 0 {
			answer.Summary = fmt.Sprintf("The event log of session %s is gone: the session was closed, or nobody used it for long. No row will come.", id)
			return answer, nil
		}
		if !page.More && !time.Now().Before(end) {
			answer.Summary = fmt.Sprintf("No row after %d of session %s fits%s within %v; %d rows came. "+
				"Look at last, at the app's own output, and at getSessionStatus; with a virtual clock call advanceTime.", since, id, filter.words, wait, answer.Looked)
			return answer, nil
		}
		if io.Progress != nil && len(page.Events) == 0 {
			meter.tell(fmt.Sprintf("waiting for a row that fits%s", filter.words))
		}
	}
}

// rowFilter says which rows fit.
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
	}{{"kind", args.Kind, []string{glasses.KindRequest, glasses.KindResult, glasses.KindEvent}}, {"chip", args.Chip, chips()},
		{"sender", args.Sender, []string{glasses.SenderApp, glasses.SenderGlasses, glasses.SenderService}}, {"type", args.Type, nil}} {
		if w.v == "" {
			continue
		}
		if w.known != nil && !slices.Contains(w.known, w.v) {
			return f, notOneOf(w.name, w.known)
		}
		f.words += fmt.Sprintf(" %s %s", w.name, clip(w.v))
	}
	if len(args.Payload) > 0 && string(args.Payload) != "null" {
		if json.Unmarshal(args.Payload, &f.payload) != nil || args.Payload[0] != '{' {
			return f, &Error{Code: CodeInvalidArguments, Message: "payload is not an object", FixHint: `pass the fields that the row's payload must have, e.g. {"target":"done"}`}
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
	for _, w := range [][2]string{{f.args.Type, row.Type}, {f.args.Kind, row.Kind}, {f.args.Chip, row.Chip}, {f.args.Sender, row.Sender}} {
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

// subset tells whether every field of want is in got; all but objects must be equal.
func subset(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for name, v := range w {
			if other, there := g[name]; !there || !subset(v, other) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !subset(w[i], g[i]) {
				return false
			}
		}
		return true
	default:
		return want == got
	}
}
