package relay

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/host"
)

// entry is a row to be written to the log. If flushed is set, the entry is only a marker: flushed is closed once all
// earlier entries are committed and published.
type entry struct {
	row     sessions.Row
	from    host.Receiver // the peer to acknowledge after the commit; nil for rows from the service
	flushed chan struct{}
}

const (
	maxBatch      = 256
	commitTimeout = 10 * time.Second
	commitTries   = 5
	maxPause      = 5 * time.Second
)

// write repeatedly commits the whole queue in one transaction. It returns once stop is closed and the queue is empty.
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
		if e.flushed == nil {
			rows = append(rows, e.row)
		}
	}
	if len(rows) > 0 {
		switch err := h.appendRows(ctx, rows); {
		case errors.Is(err, sessions.ErrUnavailable): // the store is unavailable, and the hub is closing
			h.giveUp(ctx, batch, err)
			return
		case err != nil:
			h.commitOneByOne(ctx, batch)
			return
		}
	}
	i := 0
	for _, e := range batch {
		if e.flushed != nil {
			close(e.flushed)
			continue
		}
		h.committed(e, rows[i])
		i++
	}
	h.publishCursors(rows)
}

// appendRows retries while the store is unavailable, because rows from the service would otherwise be lost. During that
// time, the queue fills up and delays the senders. Once the hub is closing, it tries at most commitTries times.
func (h *Hub) appendRows(ctx context.Context, rows []sessions.Row) error {
	var err error
	for try := 0; try < commitTries || errors.Is(err, sessions.ErrUnavailable) && h.life.Err() == nil; try++ {
		h.isAway.Store(try >= commitTries)
		if try > 0 {
			h.pause(min(h.RetryPause<<min(try, commitTries), maxPause)) // back-off: 0.4, 0.8, 1.6, 3.2, 5 s
		}
		once, cancel := context.WithTimeout(ctx, commitTimeout)
		err = h.Log.AppendEvents(once, rows, h.Quota)
		cancel()
		if err == nil || errors.Is(err, sessions.ErrNotFound) { // retries cannot help if the session was deleted
			h.isAway.Store(false)
			return err
		}
		h.Logger.Warn("failed to write event rows", "rows", len(rows), "try", try+1, "err", err)
	}
	return err
}

// pause waits for d, or for RetryPause once the hub is closing.
func (h *Hub) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-h.life.Done():
		time.Sleep(h.RetryPause)
	}
}

// giveUp drops a batch.
func (h *Hub) giveUp(ctx context.Context, batch []entry, err error) {
	h.Logger.ErrorContext(ctx, "event rows lost", "rows", len(batch), "err", err)
	for _, e := range batch {
		if e.flushed != nil {
			close(e.flushed)
		} else if e.from != nil {
			e.from.End(glasses.CloseStore, host.NotStored)
		}
	}
}

// commitOneByOne finds the row that makes a batch fail, and disconnects its sender, who then sends the frame again.
func (h *Hub) commitOneByOne(ctx context.Context, batch []entry) {
	for _, e := range batch {
		if e.flushed != nil {
			close(e.flushed)
			continue
		}
		rows := []sessions.Row{e.row}
		once, cancel := context.WithTimeout(ctx, commitTimeout)
		err := h.Log.AppendEvents(once, rows, h.Quota)
		cancel()
		if err == nil {
			h.committed(e, rows[0])
			h.publishCursors(rows)
			continue
		}
		level := slog.LevelError
		if errors.Is(err, sessions.ErrNotFound) {
			level = slog.LevelInfo // the session was deleted with its project or account
		}
		h.Logger.Log(ctx, level, "event row lost", "session", e.row.SessionID, "type", e.row.Event.Type, "err", err)
		if e.from != nil {
			e.from.End(glasses.CloseStore, host.NotStored)
		}
	}
}

func (h *Hub) committed(e entry, row sessions.Row) {
	if e.from != nil {
		e.from.SendText(host.Ack(h.Now(), row.Event))
	}
	if s := h.find(row.SessionID); s != nil && !row.Duplicate {
		s.pages.Send(host.Text(h.frame(glasses.TypeRow, "", row.Event)))
	}
}

// publishCursors tells the apps how far they may advance their cursors.
func (h *Hub) publishCursors(rows []sessions.Row) {
	last := map[string]int64{}
	for _, r := range rows {
		last[r.SessionID] = max(last[r.SessionID], r.Event.Seq)
	}
	for id, seq := range last {
		if s := h.find(id); s != nil {
			s.Apps.Send(host.Text(host.Cursor(h.Now(), seq)))
		}
		h.watchers.wake(id)
	}
}
