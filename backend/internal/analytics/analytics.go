// Package analytics counts the usage of shipped apps: sessions, events, errors and active installs. Apps send batches
// with their project key, and each event is counted once. Only hourly and daily counters are kept. Installs are stored
// only as hashes, with a salt that is deleted after a few days. The package contains no HTTP or SQL code.
package analytics

import (
	"errors"
	"time"
)

// ErrInvalid is returned for an invalid range, interval or filter of a report.
var ErrInvalid = errors.New("invalid report query")

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

// Rejected identifies a rejected event and contains the reason.
type Rejected struct {
	Index  int
	Reason string
}

// Query selects a report. If From and To are zero, the report covers the last 7 days. If Interval is empty, it is hour
// for ranges of up to 48 hours and day for longer ones. Filter selects a version, a platform or both; its empty fields
// select everything.
type Query struct {
	From, To time.Time
	Interval string
	Filter   Slice
}

// Report summarises the usage of an app. A filtered report has no active installs, because they are counted only for
// the whole app.
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
	Reading                                      string   // a summary for users and agents

	// VersionUse holds the most used versions on the filter's platform. Versions and Platforms list the values that a
	// filter can select in this range. Unsliced is set if part of the range was counted before filters existed;
	// VersionUse and all filtered counts omit that part.
	VersionUse          []VersionUse
	Versions, Platforms []string
	Unsliced            bool
}

// VersionUse counts the sessions and errors of one version.
type VersionUse struct {
	Version          string
	Sessions, Errors int64
}

// ErrorsPer100Sessions returns the rate of errors. It returns false if there were no sessions.
func (v VersionUse) ErrorsPer100Sessions() (float64, bool) {
	if v.Sessions == 0 {
		return 0, false
	}
	return float64(v.Errors) * 100 / float64(v.Sessions), true
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
