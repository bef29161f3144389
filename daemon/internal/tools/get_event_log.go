package tools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
)

const getEventLogText = `Reads the event log of a session, oldest row first: what the app showed and asked for (kind request) with its results, what the glasses told ` +
	`(kind event), who attached and left, and errors. Pass "next" of one answer as "since" of the following call to read on; the same cursor stays ` +
	`valid over restarts. Use it to check that the app did what it should, or why not (chip errors). ` +
	`To wait for a row use waitForEvent; for whether an app is attached at all getSessionStatus; for the screen getDisplayState. ` +
	`For a browser session without a linked account it answers status "auth_required"; see createSimulatorSession.`

type getEventLog struct {
	reach
	sessions eventReader
}

type eventReader interface {
	Since(ctx context.Context, target backend.Target, id string, since int64, limit int) (backend.EventPage, error)
}

type getEventLogArgs struct {
	SessionID string   `json:"sessionId"`
	Since     *integer `json:"since"`
	Limit     *integer `json:"limit"`
}

type eventLogAnswer struct {
	Status    string            `json:"status"`
	SessionID string            `json:"sessionId"`
	Events    []json.RawMessage `json:"events"`
	Next      int64             `json:"next"`
	More      bool              `json:"more"`
	Truncated bool              `json:"truncated,omitempty"`
	Summary   string            `json:"summary"`
}

func (t getEventLog) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getEventLog", Title: "Read a session's event log", Description: getEventLogText,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(sessionArgument+`,
			"since":{"type":"integer","default":0,"description":"Rows after this one; 0 is the beginning."},
			"limit":{"type":"integer","default":100,"description":"How many rows at most, 1 to 500; other values are clamped."}`, ""),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","ok"]},
			"sessionId":{"type":"string"},
			"events":{"type":"array","items":{"type":"object"},"description":"Rows with seq, at, kind (request, result, event), chip, type, id, sender (app, glasses, service) and payload."},
			"next":{"type":"integer","description":"Pass it as since to read on."},
			"more":{"type":"boolean","description":"Whether there are rows after these already."},
			"truncated":{"type":"boolean","description":"Rows between since and these are gone: the log keeps the latest 100,000 rows and 64 MB."},`+summaryProperty, `"status","summary"`, true),
	}}
}

func (t getEventLog) run(ctx context.Context, c call) (any, error) {
	var args getEventLogArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	since := clamp(args.Since, 0, 0, 1<<53)
	limit := clamp(args.Limit, session.DefaultLimit, 1, session.MaxLimit)
	return t.reach.run(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		page, err := t.sessions.Since(ctx, target, id, since, int(limit))
		if err != nil {
			return nil, err
		}
		return eventLog(id, since, page), nil
	})
}

func eventLog(id string, since int64, page backend.EventPage) eventLogAnswer {
	answer := eventLogAnswer{Status: "ok", SessionID: id, Events: page.Events, Next: page.Next, More: page.More, Truncated: page.Truncated}
	if answer.Events == nil {
		answer.Events = []json.RawMessage{}
	}
	answer.Summary = fmt.Sprintf("%d rows of session %s after row %d; read on with since %d.", len(page.Events), id, since, page.Next)
	if page.More {
		answer.Summary += " There are more."
	}
	if page.Truncated {
		answer.Summary += " Rows before these are gone: the log keeps the latest ones only."
	}
	return answer
}
