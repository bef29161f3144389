// Package memory stores what an app's assistant remembers about each of the app's users between conversations: one text
// profile for each user of a project, encrypted with the credentials key. A user is known only by a secret that the
// app's module keeps on the user's device; the database contains a keyed hash of it. The package does not decide when
// to remember, and contains no HTTP code.
package memory

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits on profiles.
const (
	MaxProfile  = 4096 // bytes of UTF-8
	DefaultDays = 30   // after its last use, a profile is deleted
	MaxDays     = 365
	// fenceTime is how long an erasure keeps conversations from writing that began before it. No conversation lasts as
	// long.
	fenceTime = 24 * time.Hour
	// touchTime is how much older than a use the stored time of the last use may be, so that not every call writes.
	touchTime = time.Hour
)

// Errors that callers check for.
var (
	ErrNotConfigured = errors.New("this backend has no key for encrypting memories")
	ErrNotFound      = errors.New("no such profile")
	// ErrTooMany is returned for another user of a project with MaxProfiles.
	ErrTooMany = errors.New("the project remembers too many users")
)

// InvalidError reports a text that cannot be a profile, or days that cannot be set. Message never contains the text.
type InvalidError struct{ Message string }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

// User is a user of a project's app. Secret is 32 lower-case hexadecimal digits, which only the user's device and its
// calls contain.
type User struct{ Account, Project, Secret string }

// ValidSecret reports whether a text has the form of a user's secret.
func ValidSecret(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}

// Profile is what is remembered about a user. Without a stored text, Text is "" and the times are zero.
type Profile struct {
	Text               string
	UpdatedAt          time.Time
	ExpiresAt          time.Time // unless it is used before
	generation, ofAll  int64     // marks of the last erasures, of the user and of the whole project; 0 without one
	hash, boundTo, was string    // of the row; was is the sealed text, or "" without one
	exists             bool      // whether there is a row
}

// Generation identifies the time since the last erasures, of a user and of the whole project. Generations can be
// compared.
type Generation struct{ user, project int64 }

// Generation returns the current generation: a conversation that began with another must not be written.
func (p Profile) Generation() Generation { return Generation{p.generation, p.ofAll} }

// CheckText returns an *InvalidError unless a text can be a profile: at most MaxProfile bytes of UTF-8, whose only
// control characters are line breaks and tabs.
func CheckText(text string) error {
	isControl := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	switch {
	case len(text) > MaxProfile:
		return &InvalidError{fmt.Sprintf("profile is %d bytes long, over the limit of %d", len(text), MaxProfile)}
	case !utf8.ValidString(text), strings.ContainsFunc(text, isControl):
		return &InvalidError{"profile must be UTF-8 text without control characters other than line breaks and tabs"}
	}
	return nil
}

// Summary describes the profiles of a project without their texts.
type Summary struct {
	Profiles int
	Oldest   time.Time // when the oldest was created; zero without profiles
	LastUsed time.Time // when one was used last, within an hour; zero without profiles
	Days     int       // after its last use, a profile is deleted
}

// Entry describes one profile. ID is a part of the hash of its user's secret.
type Entry struct {
	ID                           string
	CreatedAt, UpdatedAt, UsedAt time.Time
	ExpiresAt                    time.Time
}
