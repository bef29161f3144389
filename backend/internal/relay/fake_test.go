package relay_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

const (
	testID     = "ses_aaaaaaaaaaaaaaaaaaaa"
	testSecret = "right"
)

// memory is a log and a session register for one session in memory. The SQL implementation has its own tests.
type memory struct {
	mu     sync.Mutex
	s      sessions.Session
	rows   []glasses.Event
	ok     map[int64]bool
	state  *sessions.State
	gate   chan struct{} // if set, AppendEvents waits for it
	refuse error
	away   error // the error that Session returns

	signedOut atomic.Bool // whether the user who opened the pages has signed out
}

func newMemory() *memory {
	now := time.Now()
	return &memory{ok: map[int64]bool{}, s: sessions.Session{
		ID: testID, Owner: sessions.Owner{AccountID: "ada", LinkID: "link-1"}, Project: "com.example.app", Platform: "web",
		DeviceModel: "rayban_display",
		CreatedAt:   now, LastActive: now, ExpiresAt: now.Add(sessions.Lifetime),
	}}
}

func (m *memory) Open(_ context.Context, id, secret string) (sessions.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case id != testID || secret != testSecret:
		return sessions.Session{}, sessions.ErrBadSecret
	case !m.s.Open(time.Now()):
		return sessions.Session{}, sessions.ErrClosed
	}
	return m.s, nil
}

func (m *memory) Touch(context.Context, string) error { return nil }

func (m *memory) SetModel(_ context.Context, _, model string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s.DeviceModel = model
	return nil
}

func (m *memory) Session(_ context.Context, id string) (sessions.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id != testID {
		return sessions.Session{}, sessions.ErrNotFound
	}
	return m.s, m.away
}

func (m *memory) SomeSessions(ctx context.Context, ids []string) (found []sessions.Session, err error) {
	for _, id := range ids {
		s, err := m.Session(ctx, id)
		if errors.Is(err, sessions.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, nil
}

func (m *memory) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s.ClosedAt = time.Now()
}

func (m *memory) AppendEvents(ctx context.Context, rows []sessions.Row, q sessions.Quota) error {
	m.mu.Lock()
	gate, refuse := m.gate, m.refuse
	m.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if refuse != nil {
		return refuse
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range rows {
		if rows[i].SessionID != testID {
			return errors.New("unknown session")
		}
		m.add(&rows[i])
	}
	return nil
}

func (m *memory) add(r *sessions.Row) {
	r.Duplicate = false
	if r.State != nil {
		m.state = r.State
	}
	for _, e := range m.rows {
		if e.ID == r.Event.ID && e.Kind == r.Event.Kind && e.Sender == r.Event.Sender {
			r.Duplicate, r.Event.Seq = true, e.Seq
			return
		}
	}
	m.s.LastSeq++
	r.Event.Seq = m.s.LastSeq
	m.rows = append(m.rows, r.Event)
	m.ok[r.Event.Seq] = r.OK
}

// trim deletes the rows with numbers below first.
func (m *memory) trim(first int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s.FirstSeq = first
	m.rows = slices.DeleteFunc(m.rows, func(e glasses.Event) bool { return e.Seq < first })
}

func (m *memory) SessionEvents(_ context.Context, _ string, since int64, limit int) ([]glasses.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []glasses.Event
	for _, e := range m.rows {
		if e.Seq > since && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, nil
}

func (m *memory) Memory(context.Context, string) (sessions.Memory, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.rows) - 1; i >= 0; i-- {
		e := m.rows[i]
		if e.Kind != glasses.KindRequest || !glasses.IsCommand(e.Type) {
			continue
		}
		for _, x := range m.rows {
			if x.ID == e.ID && x.Kind == glasses.KindResult && m.ok[x.Seq] {
				return sessions.Memory{Display: e, State: m.state}, nil
			}
		}
	}
	return sessions.Memory{State: m.state}, nil
}
