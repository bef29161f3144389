package analytics

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"time"
)

// Limits on an event's time relative to its arrival, and retention times.
const (
	LateAfter = 72 * time.Hour   // older events are counted only as late
	MaxAhead  = 10 * time.Minute // how far ahead an app's clock may be; such events are counted at their arrival time
	// HourlyRetention is how long hourly counters are kept. Daily counters are kept until their project is deleted.
	HourlyRetention = 100 * 24 * time.Hour

	// retainedDays is the number of whole days before today whose event IDs and installs are kept: LateAfter plus one
	// day, because the clocks of replicas may differ.
	retainedDays = int64(LateAfter/(24*time.Hour)) + 1
)

// MaxProblems is the maximum number of rejected events explained in one response.
const MaxProblems = 10

// ErrNoProject is returned if the project does not exist.
var ErrNoProject = errors.New("the project does not exist")

// Key is the keyed hash of an event ID.
type Key [16]byte

// Install is a hash of an install ID, salted daily.
type Install [16]byte

// Batch holds the events of one Ingest call.
type Batch struct {
	Account, Project string
	Day              int64 // arrival day
	Quota            int64
	Events           []AnonymousEvent
}

// AnonymousEvent is an event without data that identifies its install.
type AnonymousEvent struct {
	Key     Key
	Install Install
	Traits
}

// Traits are the properties that events are counted by.
type Traits struct {
	Hour                      int64 // since 1970
	Type, Name                string
	Version, Platform, Device string
}

// Outcome counts the events of a batch by outcome.
type Outcome struct {
	Accepted, Duplicates, Sampled, SampleRate int
}

func hourOf(t time.Time) int64 { return t.Unix() / 3600 }
func dayOf(t time.Time) int64  { return t.Unix() / 86400 }

// anonymise validates the events and returns the valid ones without identifying data. It counts the others in out.
func (s *Service) anonymise(
	ctx context.Context, account string, events []Event, now time.Time, out *Accepted,
) ([]AnonymousEvent, error) {
	ids := hmac.New(sha256.New, s.key)
	installs := map[int64]hash.Hash{}
	anonymous := make([]AnonymousEvent, 0, len(events))
	for i := range events {
		e := &events[i]
		if reason := check(e, now); reason != "" {
			out.Rejected++
			if len(out.Problems) < MaxProblems {
				out.Problems = append(out.Problems, Rejected{Index: i, Reason: reason})
			}
			continue
		}
		if e.At.Before(now.Add(-LateAfter)) {
			out.Late++
			continue
		}
		at := e.At
		if at.After(now) {
			at = now
		}
		mac := installs[dayOf(at)]
		if mac == nil {
			salt, err := s.salt(ctx, dayOf(at), dayOf(now))
			if err != nil {
				return nil, err
			}
			mac = hmac.New(sha256.New, salt)
			installs[dayOf(at)] = mac
		}
		anonymous = append(anonymous, AnonymousEvent{
			Key: hash16(ids, e.ID),
			// The hash includes the account rather than the project, so that an install that used two projects of one
			// app remains one install if the projects are merged.
			Install: hash16(mac, account, "\x00", e.InstallID),
			Traits: Traits{Hour: hourOf(at), Type: e.Type, Name: e.Name,
				Version: e.AppVersion, Platform: e.Platform, Device: e.DeviceModel},
		})
	}
	return anonymous, nil
}

// hash16 returns a keyed hash truncated to 16 bytes.
func hash16(mac hash.Hash, parts ...string) (out [16]byte) {
	mac.Reset()
	for _, p := range parts {
		mac.Write([]byte(p))
	}
	var sum [sha256.Size]byte
	copy(out[:], mac.Sum(sum[:0]))
	return out
}

// Limits on an event's fields, in characters.
const (
	maxEventID = 64
	maxName    = 64
	minInstall = 8
	maxInstall = 64
	maxVersion = 32
	maxDevice  = 40

	versionMarks = "._-+ ()" // characters of a version besides letters and digits
)

var platforms = []string{"", "ios", "android", "web", "desktop"}

// check returns the reason why an event must be rejected, or "" if it is valid.
func check(e *Event, now time.Time) string {
	switch {
	case len(e.ID) < 1 || len(e.ID) > maxEventID || !only(e.ID, "._:-"):
		return fmt.Sprintf("id must be 1 to %d characters from A-Z a-z 0-9 . _ : -", maxEventID)
	case e.Type != Session && e.Type != Custom && e.Type != Failure:
		return "type must be session, event or error"
	case len(e.Name) > maxName || !only(e.Name, "._-") || e.Name == "" && e.Type != Session:
		return fmt.Sprintf("name must be 1 to %d characters from A-Z a-z 0-9 . _ -", maxName)
	case len(e.InstallID) < minInstall || len(e.InstallID) > maxInstall || !only(e.InstallID, "._:-"):
		return fmt.Sprintf("installId must be %d to %d characters from A-Z a-z 0-9 . _ : -", minInstall, maxInstall)
	case len(e.AppVersion) > maxVersion || !only(e.AppVersion, versionMarks):
		return fmt.Sprintf("appVersion must be at most %d characters from A-Z a-z 0-9 . _ - + ( ) and space",
			maxVersion)
	case !slices.Contains(platforms, e.Platform):
		return "platform must be ios, android, web or desktop"
	case len(e.DeviceModel) > maxDevice || !only(e.DeviceModel, "._-+ ()"):
		return fmt.Sprintf("deviceModel must be at most %d characters from A-Z a-z 0-9 . _ - + ( ) and space",
			maxDevice)
	case e.At.Unix() < 0:
		return "at must be a time in Unix milliseconds, after 1970"
	case e.At.After(now.Add(MaxAhead)):
		return "at is more than 10 minutes in the future"
	}
	return ""
}

// only reports whether s consists of ASCII letters, ASCII digits and the characters in more.
func only(s, more string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return true
}
