// Package projects manages the apps that accounts build: their ids, names and platforms, and the keys that their builds
// contain. It must not know SQL or HTTP.
package projects

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Bounds of projects.
const (
	MaxID          = 155 // bytes of an app id
	MaxProjects    = 500 // of an account
	MaxDisplayName = 80  // characters
)

// Errors that callers check for.
var (
	// ErrNotFound is returned for an unknown project and for another account's, so that they cannot be told apart.
	ErrNotFound = errors.New("no such project")
	// ErrTooManyProjects is returned for a project beyond MaxProjects.
	ErrTooManyProjects = errors.New("the account has as many projects as it can have")
	// ErrSameProject is returned for a merge of a project into itself.
	ErrSameProject = errors.New("both are the same project")
)

// InvalidError reports a request that can never succeed; Message is for people.
type InvalidError struct{ Message string }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

// Project is an app of an account. Times are UTC, millisecond precision.
type Project struct {
	ID          string // the app id
	DisplayName string // never empty: DefaultName(ID) if no name was given
	Platforms   []string
	CreatedAt   time.Time
	// LastActiveAt is the last activity of its sessions or the last use of its keys; zero if there was none.
	LastActiveAt time.Time
	Keys         int // live keys
	OpenSessions int
}

var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+$`)

// CheckID reports whether id is an app id: reverse-DNS with at least two segments of ASCII letters, digits, - and _.
// The ids that a daemon generates for a directory without a manifest (app.local.<random>) have the same form.
func CheckID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("project is missing: an app id such as com.example.app")
	case len(id) > MaxID:
		return fmt.Errorf("project is %d characters, the limit is %d", len(id), MaxID)
	case !idForm.MatchString(id) || strings.Contains(id, ".."):
		return fmt.Errorf("project is not an app id such as com.example.app: letters, digits, - and _, two segments or more")
	}
	return nil
}

// Platforms lists the platforms of apps in display order.
func Platforms() []string { return []string{"ios", "android", "web", "desktop"} }

// commonEnds are last segments of app ids that do not describe the app.
var commonEnds = []string{"app", "ios", "android", "web", "desktop", "mobile", "debug", "dev"}

// DefaultName returns a readable name from the end of an app id: Hello for com.example.hello, Example app for
// com.example.app.
func DefaultName(id string) string {
	segments := strings.Split(id, ".")
	end := segments[len(segments)-1]
	if len(segments) > 1 && slices.Contains(commonEnds, strings.ToLower(end)) {
		end = segments[len(segments)-2] + " " + end
	}
	words := strings.Fields(strings.NewReplacer("-", " ", "_", " ").Replace(end))
	if len(words) == 0 {
		return id
	}
	name := strings.Join(words, " ")
	return strings.ToUpper(name[:1]) + name[1:]
}

// checkPlatforms returns the platforms sorted and without duplicates, or an *InvalidError.
func checkPlatforms(platforms []string) ([]string, error) {
	for _, p := range platforms {
		if !slices.Contains(Platforms(), p) {
			return nil, &InvalidError{"platforms are of " + strings.Join(Platforms(), ", ")}
		}
	}
	var sorted []string
	for _, p := range Platforms() {
		if slices.Contains(platforms, p) {
			sorted = append(sorted, p)
		}
	}
	return sorted, nil
}
