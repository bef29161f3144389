// Package projects manages the apps that accounts build: their IDs, names and platforms, and the keys embedded in
// their builds. It must not depend on SQL or HTTP.
package projects

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/db"
)

// Limits on projects.
const (
	MaxID          = 155 // bytes in an app ID
	MaxProjects    = 500 // projects per account
	MaxDisplayName = 80  // characters
)

// Errors that callers check for.
var (
	// ErrNotFound is returned for an unknown project and for another account's project. Callers cannot tell the two
	// apart.
	ErrNotFound = db.ErrNoProject
	// ErrTooManyProjects is returned if the account already has MaxProjects projects.
	ErrTooManyProjects = errors.New("the account has reached its limit of projects")
	// ErrSameProject is returned when a project would be merged into itself.
	ErrSameProject = errors.New("a project cannot be merged into itself")
)

// InvalidError reports a request that can never succeed. Message is shown to users.
type InvalidError struct{ Message string }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

// Project is an app of an account. Times are UTC with millisecond precision.
type Project struct {
	ID          string // the app ID
	DisplayName string // never empty: DefaultName(ID) if no name was given
	Platforms   []string
	CreatedAt   time.Time
	// LastActiveAt is the last activity of the project's sessions or the last use of its keys; zero if there was none.
	LastActiveAt time.Time
	Keys         int // live keys
	OpenSessions int
}

var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+$`)

// CheckID returns an error unless id is an app ID: reverse DNS with at least two segments of ASCII letters, digits, -
// and _. The IDs that a daemon generates for a directory without a manifest (app.local.<random>) also have this form.
func CheckID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("project is missing: set it to an app id such as com.example.app")
	case len(id) > MaxID:
		return fmt.Errorf("project is %d characters long, over the limit of %d", len(id), MaxID)
	case !idForm.MatchString(id) || strings.Contains(id, ".."):
		return fmt.Errorf("project must be an app id such as com.example.app: two or more parts of letters, digits, - and _")
	}
	return nil
}

// Platforms lists the platforms of apps in display order.
func Platforms() []string { return []string{"ios", "android", "web", "desktop"} }

// commonEnds are last segments of app IDs that do not describe the app.
var commonEnds = []string{"app", "ios", "android", "web", "desktop", "mobile", "debug", "dev"}

// DefaultName derives a readable name from the end of an app ID: Hello for com.example.hello, Example app for
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
			return nil, &InvalidError{"platforms must be from: " + strings.Join(Platforms(), ", ")}
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
