package tools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/proto/backendapi"
)

type getEventLog struct {
	sessionGate
}

type getEventLogArgs struct {
	sessionArg
	Since *integer `json:"since" jsonschema:"Rows after this one."`
	Limit *integer `json:"limit" jsonschema:"1 to 500."`
	Type  string   `json:"type" jsonschema:"Only rows of this type."`
	Chip  string   `json:"chip"`
}

type eventLogAnswer struct {
	Status    string            `json:"status"`
	SessionID string            `json:"sessionId"`
	Events    []json.RawMessage `json:"events"`
	Next      int64             `json:"next" jsonschema:"Pass it as since to read on."`
	More      bool              `json:"more" jsonschema:"Whether more rows follow."`
	Truncated bool              `json:"truncated,omitempty"`
	Summary   string            `json:"summary"`
}

func (t getEventLog) definition() definition {
	return define(readOnly("getEventLog", "Read a session's event log",
		gatedAnswersOf[eventLogAnswer]([]string{"ok"},
			on("events", says("Rows with seq, at, kind (request, result, event), chip, type, id, sender (app, glasses, "+
				"service) and payload.")),
			on("truncated", says("Rows between since and these were deleted: the log keeps the latest 100,000 rows and 64 MB.")),
		),
	), t.run,
		on("since", byDefault(0)),
		on("limit", byDefault(session.DefaultLimit)),
		on("chip", oneOf(glasses.Chips()...)),
	)
}

func (t getEventLog) run(ctx context.Context, c call, args getEventLogArgs) (any, error) {
	since := clamp(args.Since, 0, 0, 1<<53)
	limit := clamp(args.Limit, session.DefaultLimit, 1, session.MaxLimit)
	filter, err := filterOf(waitForEventArgs{Type: args.Type, Chip: args.Chip})
	if err != nil {
		return nil, err
	}
	return t.onSession(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		page, err := t.rows(ctx, target, id, since, int(limit), filter)
		if err != nil {
			return nil, err
		}
		return eventLog(id, since, page), nil
	})
}

// maxScanned is how many pages of rows a call with a filter reads. The next call continues there.
const maxScanned = 20

// rows returns the first rows after since that pass the filter.
func (t getEventLog) rows(ctx context.Context, target backend.Target, id string, since int64, limit int,
	filter rowFilter) (backendapi.EventPage, error) {
	if filter.words == "" {
		return t.sessions.Since(ctx, target, id, since, limit)
	}
	found := backendapi.EventPage{Next: since, More: true}
	for range maxScanned {
		page, err := t.sessions.Since(ctx, target, id, found.Next, session.MaxLimit)
		if err != nil {
			return found, err
		}
		found.Truncated = found.Truncated || page.Truncated
		for _, raw := range page.Events {
			seq, fits := filter.fits(raw)
			if fits && len(found.Events) == limit {
				return found, nil
			}
			if fits {
				found.Events = append(found.Events, raw)
			}
			found.Next = seq
		}
		if found.Next = max(found.Next, page.Next); !page.More {
			found.More = false
			break
		}
	}
	return found, nil
}

func eventLog(id string, since int64, page backendapi.EventPage) eventLogAnswer {
	fitRows(&page)
	answer := eventLogAnswer{Status: "ok", SessionID: id, Events: page.Events, Next: page.Next, More: page.More,
		Truncated: page.Truncated}
	if answer.Events == nil {
		answer.Events = []json.RawMessage{}
	}
	answer.Summary = fmt.Sprintf("%d rows of session %s after row %d; read on with since %d.", len(page.Events), id,
		since, page.Next)
	if page.More {
		answer.Summary += " There are more."
	}
	if page.Truncated {
		answer.Summary += " Earlier rows were deleted: the log keeps only the latest ones."
	}
	return answer
}

// fitRows removes image data from the rows of a page, and omits the last rows if they do not fit into an answer.
func fitRows(page *backendapi.EventPage) {
	size := 0
	for i, row := range page.Events {
		if encoded, err := json.Marshal(row); err == nil { // encoded as in the answer
			row = encoded
		}
		page.Events[i] = withoutData(row)
		if size += encodedSize(page.Events[i]); size > maxRows && i > 0 {
			var last struct{ Seq int64 }
			if json.Unmarshal(page.Events[i-1], &last) == nil {
				page.Events, page.Next, page.More = page.Events[:i], last.Seq, true
			}
			return
		}
	}
}
