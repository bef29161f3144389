package web

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

// attached implements sessions.Attached. Its apps and pages are attached to sessions, by session ID.
type attached struct{ *dashboardWorld }

func (a attached) Attached(id string) (live sessions.Live) {
	a.with(func() { live = a.live[id] })
	return live
}

func (a attached) WithApps(string) (ids []string) {
	a.with(func() {
		for id, live := range a.live {
			if len(live.Apps) > 0 {
				ids = append(ids, id)
			}
		}
	})
	return ids
}

func (attached) Closed(string)                            {}
func (attached) Switched(context.Context, string, string) {}

func (attached) Watch(string, string) (<-chan struct{}, func(), error) { return nil, func() {}, nil }

func (attached) Control(context.Context, string, string, json.RawMessage, []byte) (json.RawMessage, error) {
	return nil, sessions.ErrNoGlasses
}

// addSession adds an open session of hello, which was last used the given time before then. If tree is not empty, its
// glasses show it.
func (h *dashboardWorld) addSession(id, model, tree string, used time.Duration) {
	h.t.Helper()
	h.addSessionOf(adaID, hello, id, model, used)
	if tree != "" {
		h.show(id, tree)
	}
}

func (h *dashboardWorld) addSessionOf(accountID, project, id, model string, used time.Duration) {
	h.t.Helper()
	h.exec(`INSERT INTO sessions (id, account_id, link_id, app_id, platform, device_model, is_current, created_at,
			last_active_at, expires_at) VALUES ($1, $2, 'link1', $3, 'web', $4, 0, $5, $6, $7)`,
		id, accountID, project, model, then.UnixMilli(), then.Add(-used).UnixMilli(), then.Add(24*time.Hour).UnixMilli())
}

// show makes the glasses of a session show a tree.
func (h *dashboardWorld) show(id, tree string) {
	h.t.Helper()
	h.shows++
	frame := fmt.Sprint("app-", h.shows)
	request := glasses.Event{Kind: glasses.KindRequest, Type: glasses.TypeDisplayShow, ID: frame,
		Sender: glasses.SenderApp, Payload: []byte(tree)}
	result := glasses.Event{Kind: glasses.KindResult, Type: glasses.TypeResult, ID: frame, Sender: glasses.SenderGlasses,
		Payload: []byte(`{}`)}
	h.append(sessions.Row{SessionID: id, Event: request}, sessions.Row{SessionID: id, Event: result, OK: true})
}

// append adds rows to the logs of sessions.
func (h *dashboardWorld) append(rows ...sessions.Row) {
	h.t.Helper()
	if err := h.sessions.Store.AppendEvents(context.Background(), rows, sessions.DefaultQuota); err != nil {
		h.t.Fatal(err)
	}
}

// isOpen reports whether a session is open.
func (h *dashboardWorld) isOpen(id string) bool {
	h.t.Helper()
	s, err := h.sessions.Store.Session(context.Background(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return s.Open(h.now())
}
