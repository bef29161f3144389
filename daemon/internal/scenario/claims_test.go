package scenario

import (
	"fmt"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/glasses/scenario"
)

// The journal is bounded by its bytes, its notes and its sessions, and knows what it forgot.
func TestJournal_IsBounded(t *testing.T) {
	var j journal
	note := func(row int64, text string) note { return note{after: row, step: scenario.Step{Note: text}} }
	for row := range int64(40) {
		j.add("long", note(row, strings.Repeat("x", 100_000)))
	}
	list, whole := j.of("long", 0)
	if len(list) != maxNoteBytes/100_000 || whole || j.sessions["long"].bytes > maxNoteBytes {
		t.Errorf("%d notes of %d bytes, whole %v", len(list), j.sessions["long"].bytes, whole)
	}
	if list, whole := j.of("long", list[0].after); len(list) != maxNoteBytes/100_000 || !whole {
		t.Errorf("from the first that is kept: %d notes, whole %v", len(list), whole)
	}
	for row := range int64(maxNotes + 5) {
		j.add("many", note(row, "x"))
	}
	if list, whole := j.of("many", 0); len(list) != maxNotes || whole {
		t.Errorf("%d notes, whole %v", len(list), whole)
	}
	for i := range maxJournals {
		j.add(fmt.Sprint("session ", i), note(1, "x"))
	}
	if list, whole := j.of("long", 0); list != nil || !whole || len(j.sessions) != maxJournals {
		t.Errorf("%d sessions, and %d notes of the oldest", len(j.sessions), len(list))
	}
	if list, whole := j.of("session 1", 0); len(list) != 1 || !whole {
		t.Errorf("%d notes, whole %v", len(list), whole)
	}
}
