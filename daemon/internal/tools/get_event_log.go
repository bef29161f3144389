package tools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
)

const getEventLogText = `Reads the event log of a simulator session, oldest row first: what the app showed and asked for, what the person did on the ` +
	`glasses, who attached and left, and errors. Pass "next" of one answer as "since" of the following call to read on; the same cursor stays ` +
	`valid over restarts. Without sessionId it reads the open session that was used last. Use it to check that the app did what it should. ` +
	`For whether an app is attached at all, use getSessionStatus. ` +
	`Without a linked account it answers status "auth_required"; see createSimulatorSession.`

type getEventLog struct {
	gate     *gate
	sessions eventReader
}

type eventReader interface {
	List(ctx context.Context, target backend.Target) ([]backend.Session, error)
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
	Summary   string            `json:"summary"`
}

func (t getEventLog) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getEventLog", Title: "Read a session's event log", Description: getEventLogText, NeedsAccount: true,
		Annotations: Annotations{ReadOnly: true, Idempotent: true, OpenWorld: true},
		InputSchema: inputSchema(`
			"sessionId":{"type":"string","description":"Left out: the open session that was used last."},
			"since":{"type":"integer","default":0,"description":"Rows after this one; 0 is the beginning."},
			"limit":{"type":"integer","default":100,"description":"How many rows at most, 1 to 500; other values are clamped."}`, ""),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","ok"]},
			"sessionId":{"type":"string"},
			"events":{"type":"array","items":{"type":"object"},"description":"Rows with seq, type, id, at and payload."},
			"next":{"type":"integer","description":"Pass it as since to read on."},
			"more":{"type":"boolean","description":"Whether there are rows after these already."},`+summaryProperty, `"status","summary"`, true),
	}}
}

func (t getEventLog) run(ctx context.Context, c call) (any, error) {
	var args getEventLogArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	since := clamp(args.Since, 0, 0, 1<<53)
	limit := clamp(args.Limit, session.DefaultLimit, 1, session.MaxLimit)
	return t.gate.run(ctx, c, nil, func(ctx context.Context, target backend.Target) (any, error) {
		id := args.SessionID
		if id == "" {
			latest, err := t.latest(ctx, target)
			if err != nil {
				return nil, err
			}
			id = latest
		}
		page, err := t.sessions.Since(ctx, target, id, since, int(limit))
		if err != nil {
			return nil, err
		}
		return eventLog(id, since, page), nil
	})
}

func eventLog(id string, since int64, page backend.EventPage) eventLogAnswer {
	answer := eventLogAnswer{Status: "ok", SessionID: id, Events: page.Events, Next: page.Next, More: page.More}
	if answer.Events == nil {
		answer.Events = []json.RawMessage{}
	}
	answer.Summary = fmt.Sprintf("%d rows of session %s after row %d; read on with since %d.", len(page.Events), id, since, page.Next)
	if page.More {
		answer.Summary += " There are more."
	}
	return answer
}

func (t getEventLog) latest(ctx context.Context, target backend.Target) (string, error) {
	open, err := t.sessions.List(ctx, target)
	if err != nil {
		return "", err
	}
	if len(open) == 0 {
		return "", &backend.Problem{
			Code: backend.CodeNotFound, Message: "no session is open",
			FixHint: "call createSimulatorSession to open one, or pass the sessionId of a closed session",
		}
	}
	latest := open[0]
	for _, s := range open[1:] {
		if s.LastActiveAt.After(latest.LastActiveAt) {
			latest = s
		}
	}
	return latest.SessionID, nil
}
