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

// When an event may have happened, seen from its arrival.
const (
	LateAfter = 72 * time.Hour   // older events are late and not counted
	AheadMost = 10 * time.Minute // a clock may be ahead by this; such events count as of now
	// KeptHours is how long sums by hour are kept. Sums by day stay as long as the project.
	KeptHours = 100 * 24 * time.Hour

	// keptDays is how many whole days before today ids and installs are kept: LateAfter, and a day of margin for
	// replicas whose clocks differ.
	keptDays = int64(LateAfter/(24*time.Hour)) + 1
)

// MaxTold is how many rejected events an answer explains.
const MaxTold = 10

// ErrNoProject says that the project is gone.
var ErrNoProject = errors.New("the project does not exist")

// Key is the hash of an event's id.
type Key [16]byte

// Install is the hash of an install on one day.
type Install [16]byte

// Batch is what one call brings to the store.
type Batch struct {
	Account, Project string
	Day              int64 // of arrival
	Quota            int64
	Marks            []Mark
}

// Mark is an event without what could tell who it came from.
type Mark struct {
	Key                       Key
	Install                   Install
	Hour                      int64
	Type, Name                string
	Version, Platform, Device string
}

// Outcome is what became of the marks of a batch.
type Outcome struct {
	Accepted, Duplicates, Sampled, SampleRate int
}

func hourOf(t time.Time) int64 { return t.Unix() / 3600 }
func dayOf(t time.Time) int64  { return t.Unix() / 86400 }

// marks checks the events and takes the identity off those that may count; the others are told in out.
func (s *Service) marks(ctx context.Context, account string, events []Event, now time.Time, out *Accepted) ([]Mark, error) {
	ids := hmac.New(sha256.New, s.key)
	installs := map[int64]hash.Hash{}
	marks := make([]Mark, 0, len(events))
	for i := range events {
		e := &events[i]
		if reason := check(e, now); reason != "" {
			out.Rejected++
			if len(out.Problems) < MaxTold {
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
		m := Mark{Hour: hourOf(at), Type: e.Type, Name: e.Name, Version: e.AppVersion, Platform: e.Platform, Device: e.DeviceModel}
		m.Key = Key(short(ids, e.ID))
		mac := installs[dayOf(at)]
		if mac == nil {
			salt, err := s.salt(ctx, dayOf(at), dayOf(now))
			if err != nil {
				return nil, err
			}
			mac = hmac.New(sha256.New, salt)
			installs[dayOf(at)] = mac
		}
		// Of the account and not of the project: when two ids of one app are merged, an install of both is one.
		m.Install = Install(short(mac, account, "\x00", e.InstallID))
		marks = append(marks, m)
	}
	return marks, nil
}

// short is a keyed hash cut to 16 bytes.
func short(mac hash.Hash, parts ...string) (out [16]byte) {
	mac.Reset()
	for _, p := range parts {
		mac.Write([]byte(p))
	}
	var sum [sha256.Size]byte
	copy(out[:], mac.Sum(sum[:0]))
	return out
}

// Bounds of an event's fields, in characters.
const (
	maxEventID = 64
	maxName    = 64
	minInstall = 8
	maxInstall = 64
	maxVersion = 32
	maxDevice  = 40
)

var platforms = []string{"", "ios", "android", "web", "desktop"}

// check gives the reason why an event cannot be taken, or "".
func check(e *Event, now time.Time) string {
	switch {
	case len(e.ID) < 1 || len(e.ID) > maxEventID || !only(e.ID, "._:-"):
		return fmt.Sprintf("id is not 1 to %d characters of A-Z a-z 0-9 . _ : -", maxEventID)
	case e.Type != Session && e.Type != Custom && e.Type != Failure:
		return "type is not session, event or error"
	case len(e.Name) > maxName || !only(e.Name, "._-") || e.Name == "" && e.Type != Session:
		return fmt.Sprintf("name is not 1 to %d characters of A-Z a-z 0-9 . _ -", maxName)
	case len(e.InstallID) < minInstall || len(e.InstallID) > maxInstall || !only(e.InstallID, "._:-"):
		return fmt.Sprintf("installId is not %d to %d characters of A-Z a-z 0-9 . _ : -", minInstall, maxInstall)
	case len(e.AppVersion) > maxVersion || !only(e.AppVersion, "._-+ ()"):
		return fmt.Sprintf("appVersion is over %d characters or has others than A-Z a-z 0-9 . _ - + ( ) and spaces", maxVersion)
	case !slices.Contains(platforms, e.Platform):
		return "platform is not ios, android, web or desktop"
	case len(e.DeviceModel) > maxDevice || !only(e.DeviceModel, "._-+ ()"):
		return fmt.Sprintf("deviceModel is over %d characters or has others than A-Z a-z 0-9 . _ - + ( ) and spaces", maxDevice)
	case e.At.Unix() < 0:
		return "at is missing or before 1970: it is Unix milliseconds"
	case e.At.After(now.Add(AheadMost)):
		return "at is more than 10 minutes in the future"
	}
	return ""
}

// only tells whether s has no other characters than ASCII letters, digits and more.
func only(s, more string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return true
}
