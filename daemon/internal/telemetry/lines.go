package telemetry

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/proto/telemetry"
)

// parse reads the lines of a segment. A line that is torn, foreign or not of the list is lost; what an event carries
// beyond the list is not kept.
func parse(data []byte) (events []telemetry.Event, lost int64) {
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if e, ok := parseLine(line); ok {
			events = append(events, e)
		} else {
			lost++
		}
	}
	return events, lost
}

func parseLine(line []byte) (telemetry.Event, bool) {
	var e telemetry.Event
	if len(line) > maxLine || json.Unmarshal(line, &e) != nil || e.Check() != nil {
		return e, false
	}
	if id, err := uuid.Parse(e.ID); err != nil || id.Version() != 7 || id.String() != e.ID {
		return e, false
	}
	_, err := time.Parse(timestamp, e.At)
	return e, err == nil
}
