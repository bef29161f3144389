package telemetry

import (
	"bytes"
	"encoding/json"

	"github.com/service-dev/service/proto/telemetry"
)

// parse reads the lines of a segment. It drops incomplete lines, undeclared events and undeclared fields.
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

func parseLine(line []byte) (e telemetry.Event, ok bool) {
	if len(line) > maxLine || json.Unmarshal(line, &e) != nil {
		return e, false
	}
	_, err := e.Record()
	return e, err == nil
}
