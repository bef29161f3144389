package scenario

import (
	"fmt"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses/scenario"
)

// The journal is limited in bytes, notes and sessions, and reports whether it dropped notes.
func TestJournal_IsBounded(t *testing.T) {
	var j journal
	note := func(row int64, text string) note { return note{after: row, step: scenario.Step{Note: text}} }
	for row := range int64(40) {
		j.add("long", note(row, strings.Repeat("x", 100_000)))
	}
	list, whole := j.of("long", 0)
	if len(list) != maxNoteBytes/100_000 || whole || j.sessions["long"].bytes > maxNoteBytes {
		t.Errorf("%d notes of %d bytes, whole %v; want bounded bytes and whole false",
			len(list), j.sessions["long"].bytes, whole)
	}
	if list, whole := j.of("long", list[0].after); len(list) != maxNoteBytes/100_000 || !whole {
		t.Errorf("from the first kept note: %d notes, whole %v; want all and true", len(list), whole)
	}
	for row := range int64(maxNotes + 5) {
		j.add("many", note(row, "x"))
	}
	if list, whole := j.of("many", 0); len(list) != maxNotes || whole {
		t.Errorf("%d notes, whole %v; want maxNotes and false", len(list), whole)
	}
	for i := range maxJournals {
		j.add(fmt.Sprint("session ", i), note(1, "x"))
	}
	if list, whole := j.of("long", 0); list != nil || !whole || len(j.sessions) != maxJournals {
		t.Errorf("%d sessions and %d notes of the oldest; want maxJournals and none", len(j.sessions), len(list))
	}
	if list, whole := j.of("session 1", 0); len(list) != 1 || !whole {
		t.Errorf("%d notes, whole %v; want 1 and true", len(list), whole)
	}
}
