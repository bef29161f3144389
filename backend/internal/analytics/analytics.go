// Package analytics counts what shipped apps do: sessions, events, errors, active installs. Apps send batches with
// their project key; each event counts once; only sums by hour and day are kept, and installs only as hashes with a salt
// that lives for some days. It knows neither HTTP nor SQL.
package analytics

import (
	"errors"
	"time"
)

// ErrInvalid is a range or interval that cannot be reported.
var ErrInvalid = errors.New("the range cannot be reported")

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

// Event is one thing that happened in an app.
type Event struct {
	ID, Type, Name        string
	At                    time.Time
	InstallID             string
	AppVersion            string
	Platform, DeviceModel string
}

// Accepted tells what became of a batch; each event is in one of the counts.
type Accepted struct {
	Accepted, Duplicates, Late, Sampled, Rejected int
	SampleRate                                    int // 1: every event counts
	Problems                                      []Rejected
}

// Rejected says why an event was not taken.
type Rejected struct {
	Index  int
	Reason string
}

// Query asks for a report. Zero From and To mean the last 7 days; empty Interval is hour up to 48 hours, else day.
type Query struct {
	From, To time.Time
	Interval string
}

// Report is what an app did.
type Report struct {
	Project                                      string
	From, To                                     time.Time
	Interval                                     string
	Sessions, Events, Errors, PeakActiveInstalls int64
	Series                                       []Point
	ByEvent, ByError, ByVersion                  []Count
	ByPlatform, ByDevice                         []Count
	Estimated                                    bool     // some counts are scaled up from a sample
	Approximate                                  []string // which fields are
	Reading                                      string   // a few sentences for people and agents
}

// Point is one hour or day, at its beginning.
type Point struct {
	At                                       time.Time
	Sessions, Events, Errors, ActiveInstalls int64
}

// Count is how often something came up.
type Count struct {
	Name string
	N    int64
}
