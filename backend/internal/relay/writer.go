package relay

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/glasses"
)

// entry is one row on its way to the log, or (with reached set) a mark that is closed when everything before it is
// committed and published.
type entry struct {
	row     sessions.Row
	from    *conn // acknowledged after the commit; nil for rows of the service
	reached chan struct{}
}

const (
	maxBatch    = 256
	commitWait  = 10 * time.Second
	commitTries = 5
	maxPause    = 5 * time.Second
)

// write is the one writer: it commits everything that waits in one transaction. It returns when stop is closed and the
// queue is empty.
func (h *Hub) write(ctx context.Context, stop <-chan struct{}) {
	for {
		select {
		case e := <-h.queue:
			h.commit(ctx, h.gather(e))
			continue
		default:
		}
		select {
		case e := <-h.queue:
			h.commit(ctx, h.gather(e))
		case <-stop:
			if len(h.queue) == 0 {
				return
			}
		}
	}
}

func (h *Hub) gather(first entry) []entry {
	batch := []entry{first}
	for len(batch) < maxBatch {
		select {
		case e := <-h.queue:
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

func (h *Hub) commit(ctx context.Context, batch []entry) {
	rows := make([]sessions.Row, 0, len(batch))
	for _, e := range batch {
		if e.reached == nil {
			rows = append(rows, e.row)
		}
	}
	if len(rows) > 0 {
		switch err := h.append(ctx, rows); {
		case errors.Is(err, sessions.ErrUnavailable): // no row is at fault, and the hub closes
			h.lose(ctx, batch, err)
			return
		case err != nil:
			h.commitOneByOne(ctx, batch)
			return
		}
	}
	i := 0
	for _, e := range batch {
		if e.reached != nil {
			close(e.reached)
			continue
		}
		h.committed(e, rows[i])
		i++
	}
	h.advance(rows)
}

// append retries for as long as the store is away: nobody would send a row of the service again. The queue fills up
// meanwhile and holds the senders up. A store that is away when the hub closes has commitTries.
func (h *Hub) append(ctx context.Context, rows []sessions.Row) error {
	var err error
	for try := 0; try < commitTries || errors.Is(err, sessions.ErrUnavailable) && h.life.Err() == nil; try++ {
		h.away.Store(try >= commitTries)
		if try > 0 {
			h.pause(min(h.RetryPause<<min(try, commitTries), maxPause)) // back-off: 0.4, 0.8, 1.6, 3.2, 5 s
		}
		once, cancel := context.WithTimeout(ctx, commitWait)
		err = h.Log.AppendEvents(once, rows, h.Quota)
		cancel()
		if err == nil || errors.Is(err, sessions.ErrNotFound) { // a deleted session's row will not do better later
			h.away.Store(false)
			return err
		}
		h.Logger.Warn("writing event rows", "rows", len(rows), "try", try+1, "error", err)
	}
	return err
}

// pause waits, but no longer than RetryPause once the hub closes.
func (h *Hub) pause(d time.Duration) {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-late.C:
	case <-h.life.Done():
		time.Sleep(h.RetryPause)
	}
}

// lose gives a batch up.
func (h *Hub) lose(ctx context.Context, batch []entry, err error) {
	h.Logger.ErrorContext(ctx, "event rows lost", "rows", len(batch), "error", err)
	for _, e := range batch {
		if e.reached != nil {
			close(e.reached)
		} else if e.from != nil {
			e.from.end(closeStore, "the frame could not be stored; reconnect and send it again")
		}
	}
}

// commitOneByOne finds the row that spoils a batch. Its sender is cut off: it was not acknowledged and sends it again.
func (h *Hub) commitOneByOne(ctx context.Context, batch []entry) {
	for _, e := range batch {
		if e.reached != nil {
			close(e.reached)
			continue
		}
		rows := []sessions.Row{e.row}
		once, cancel := context.WithTimeout(ctx, commitWait)
		err := h.Log.AppendEvents(once, rows, h.Quota)
		cancel()
		if err == nil {
			h.committed(e, rows[0])
			h.advance(rows)
			continue
		}
		level := slog.LevelError
		if errors.Is(err, sessions.ErrNotFound) {
			level = slog.LevelInfo // it was deleted with its project or account
		}
		h.Logger.Log(ctx, level, "event row lost", "session", e.row.SessionID, "type", e.row.Event.Type, "error", err)
		if e.from != nil {
			e.from.end(closeStore, "the frame could not be stored; reconnect and send it again")
		}
	}
}

func (h *Hub) committed(e entry, row sessions.Row) {
	if e.from != nil {
		ack := glasses.Ack{ID: row.Event.ID, Kind: row.Event.Kind, Seq: row.Event.Seq}
		e.from.tell(h.frame(glasses.TypeAck, row.Event.ID, ack))
	}
	if !row.Duplicate {
		h.bus.Publish(row.SessionID, toPages, text(h.frame(glasses.TypeRow, "", row.Event)))
	}
}

// advance tells the apps how far their cursor may go: every frame up to there was relayed before it was queued.
func (h *Hub) advance(rows []sessions.Row) {
	last := map[string]int64{}
	for _, r := range rows {
		last[r.SessionID] = max(last[r.SessionID], r.Event.Seq)
	}
	for id, seq := range last {
		cursor := text(h.frame(glasses.TypeCursor, "", glasses.Cursor{Seq: seq}))
		h.bus.Publish(id, toApps, cursor)
		h.bus.Publish(id, toWatchers, cursor)
	}
}
