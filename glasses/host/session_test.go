package host

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
)

// storedRows returns the rows first to last, in pages of at most two.
func storedRows(first, last int64) Rows {
	return Rows{First: first, Last: last,
		Read: func(_ context.Context, since int64, limit int) (rows []glasses.Event, err error) {
			for seq := max(since+1, first); seq <= last && len(rows) < min(limit, 2); seq++ {
				rows = append(rows, glasses.Event{Seq: seq})
			}
			return rows, nil
		}}
}

func TestRows_ReplayFromCursor(t *testing.T) {
	for _, tc := range []struct {
		first, last, since int64
		want               []int64
	}{
		{1, 5, 2, []int64{3, 4, 5}},
		{4, 5, 1, []int64{4, 5}}, // the welcome reports that rows are missing
		{1, 5, 5, nil},
		{1, 5, 9, nil},
		{1, 0, 0, nil},
	} {
		var got []int64
		err := storedRows(tc.first, tc.last).Replay(t.Context(), tc.since, func(row glasses.Event) error {
			got = append(got, row.Seq)
			return nil
		})
		if err != nil || len(got) != len(tc.want) || len(got) > 0 && (got[0] != tc.want[0] || got[len(got)-1] != tc.last) {
			t.Errorf("rows %d to %d after %d: %v, error %v; want %v", tc.first, tc.last, tc.since, got, err, tc.want)
		}
	}
}

func TestRows_ReplayFailsIfRowsAreDeletedMeanwhile(t *testing.T) {
	rows := storedRows(4, 6)
	rows.First = 1 // when the peer attached
	err := rows.Replay(t.Context(), 0, func(glasses.Event) error { return nil })
	if !errors.Is(err, ErrTrimmed) {
		t.Errorf("error %v, want ErrTrimmed", err)
	}
}

// clock is a host that only has a clock.
type clock struct {
	Host[*app]
	now func() time.Time
}

func (c clock) Now() time.Time { return c.now() }

type app struct {
	Receiver
	Attachment
}

// A host may read its clock under a lock of its own, which must not be acquired inside of the session's lock for
// streams.
func TestSession_ReadsClockBeforeLockingStreams(t *testing.T) {
	var s Session[*app]
	s.Init(clock{now: func() time.Time {
		if !s.streamsMu.TryLock() {
			t.Error("the clock was read while streams were locked")
			return time.Time{}
		}
		defer s.streamsMu.Unlock()
		return time.Time{}
	}}, broker.New(broker.Options{}), time.Second)
	s.RelayStream(glasses.TypeMotion, 1, Message{})
}
