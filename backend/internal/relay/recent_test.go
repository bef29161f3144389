package relay_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/glasses"
)

// A page without a cursor receives as many of the latest rows as it can show, but not more than a slow network can
// transfer.
func TestServePage_RecentRows(t *testing.T) {
	for _, tc := range []struct {
		name       string
		rows, size int
		want       int
	}{
		{"a session of some hours", 338, 100, 338},
		{"the latest rows of a long one", 6000, 100, 5000},
		{"large rows", 1000, 4000, 400},
		{"very large rows", 300, 60_000, 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMemory()
			payload, err := json.Marshal(strings.Repeat("x", tc.size))
			if err != nil {
				t.Fatal(err)
			}
			for i := 1; i <= tc.rows; i++ {
				m.rows = append(m.rows, glasses.Event{Seq: int64(i), Kind: glasses.KindEvent, Type: "com.example.many",
					ID: fmt.Sprint(i), Sender: glasses.SenderApp, Payload: payload})
			}
			m.s.FirstSeq, m.s.LastSeq = 1, int64(tc.rows)
			page, _ := startNode(t, m, relay.Options{}).page(t, "")
			begin, first, bytes := time.Now(), int64(0), 0
			for last := int64(0); last < int64(tc.rows); {
				var row glasses.Event
				f := page.want(glasses.TypeRow, &row)
				if first == 0 {
					first = row.Seq
				}
				last, bytes = row.Seq, bytes+len(f.Payload)
			}
			t.Logf("%d bytes in %v", bytes, time.Since(begin))
			if got := tc.rows - int(first) + 1; got != tc.want {
				t.Errorf("got the latest %d of %d rows, want %d", got, tc.rows, tc.want)
			}
		})
	}
}
