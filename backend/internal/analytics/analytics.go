// Package analytics counts the usage of shipped apps: sessions, events, errors, active installs. Apps send batches
// with their project key; each event counts once. Only hourly and daily counters are kept, and installs only as
// hashes with a salt that is deleted after some days. The package knows neither HTTP nor SQL.
package analytics

import (
	"errors"
	"time"
)

// ErrInvalid is returned for a range or interval that cannot be reported.
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

// Event is one event of an app.
type Event struct {
	ID, Type, Name        string
	At                    time.Time
	InstallID             string
	AppVersion            string
	Platform, DeviceModel string
}

// Accepted counts a batch's events by outcome; each event is in exactly one count.
type Accepted struct {
	Accepted, Duplicates, Late, Sampled, Rejected int
	SampleRate                                    int // 1: every event was counted
	Problems                                      []Rejected
}

// Rejected is the reason for rejecting an event.
type Rejected struct {
	Index  int
	Reason string
}

// Query selects a report. Zero From and To mean the last 7 days; an empty Interval means hours for ranges of up to 48
// hours, otherwise days.
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
	Approximate                                  []string // fields that are estimates
	Reading                                      string   // a summary for people and agents
}

// Point holds the counts of the hour or day that begins at At.
type Point struct {
	At                                       time.Time
	Sessions, Events, Errors, ActiveInstalls int64
}

// Count is how often a name was counted.
type Count struct {
	Name string
	N    int64
}
