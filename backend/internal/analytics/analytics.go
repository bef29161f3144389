// Package analytics counts the usage of shipped apps: sessions, events, errors and active installs. Apps send batches
// with their project key, and each event is counted once. Only hourly and daily counters are kept. Installs are stored
// only as hashes, with a salt that is deleted after a few days. The package contains no HTTP or SQL code.
package analytics

import (
	"errors"
	"time"
)

// ErrInvalid is returned for an invalid range or interval of a report.
var ErrInvalid = errors.New("invalid report range")

// Types of events.
const (
	Session = "session"
	Custom  = "event"
	Failure = "error"
)

// Intervals of a report.
const (
	Hour = "hour"
	Day  = "day"
)

// Event is an event that an app sent.
type Event struct {
	ID, Type, Name        string
	At                    time.Time
	InstallID             string
	AppVersion            string
	Platform, DeviceModel string
}

// Accepted counts the events of a batch by outcome. Each event counts toward exactly one outcome.
type Accepted struct {
	Accepted, Duplicates, Late, Sampled, Rejected int
	SampleRate                                    int // 1 if every event was counted
	Problems                                      []Rejected
}

// Rejected says which event was rejected and why.
type Rejected struct {
	Index  int
	Reason string
}

// Query selects a report. If From and To are zero, the report covers the last 7 days. If Interval is empty, it is hour
// for ranges of up to 48 hours and day for longer ones.
type Query struct {
	From, To time.Time
	Interval string
}

// Report summarises the usage of an app.
type Report struct {
	Project                                      string
	From, To                                     time.Time
	Interval                                     string
	Sessions, Events, Errors, PeakActiveInstalls int64
	Series                                       []Point
	ByEvent, ByError, ByVersion                  []Count
	ByPlatform, ByDevice                         []Count
	Estimated                                    bool     // some counts are scaled up from a sample
	Approximate                                  []string // names of the fields that are estimates
	Reading                                      string   // a summary for people and agents
}

// Point holds the counts of the hour or day that begins at At.
type Point struct {
	At                                       time.Time
	Sessions, Events, Errors, ActiveInstalls int64
}

// Count is the number of times a name occurred.
type Count struct {
	Name string
	N    int64
}
