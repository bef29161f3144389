package clientio

import (
	"runtime"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/clientio"
)

// The response to a read may be long, but decoding its other fields must not use a multiple of its size.
func TestDecode_EntriesThatNobodyAskedForAreNotMade(t *testing.T) {
	line := []byte(`{"id":1,"data":"AA==","entries":[{}` + strings.Repeat(",{}", 1<<20) + `]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	answer, err := decode(clientio.Request{ID: 1, Op: clientio.Read, Limit: 32 << 20}, line)
	runtime.ReadMemStats(&after)
	if err != nil || answer.Entries != nil || len(answer.Data) != 1 || answer.ID != 1 {
		t.Errorf("%v, id %d, %d entries, %d bytes; want id 1, no entries and 1 byte",
			err, answer.ID, len(answer.Entries), len(answer.Data))
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > 16<<20 {
		t.Errorf("%d bytes were allocated, want at most 16 MB", made)
	}
}

func TestDecode_EntriesThatWereAskedFor(t *testing.T) {
	answer, err := decode(clientio.Request{ID: 1, Op: clientio.List},
		[]byte(`{"id":1,"entries":[{"name":"YQ==","kind":"file"}]}`))
	if err != nil || len(answer.Entries) != 1 || answer.Entries[0].Name != "a" {
		t.Errorf("%v, id %d, %d entries, %d bytes; want one entry named a",
			err, answer.ID, len(answer.Entries), len(answer.Data))
	}
}
