// Package projects is what the backend knows of an app that an account builds: that it exists, what its id may look
// like, and the keys that its builds carry. It must not know sessions, SQL or HTTP.
package projects

import (
	"fmt"
	"regexp"
	"strings"
)

// MaxID is the longest app id, in bytes.
const MaxID = 155

var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+$`)

// CheckID tells whether id is an app id: reverse-DNS, two segments or more, of ASCII letters, digits, - and _. The ids
// that a daemon makes up for a directory without a manifest (app.local.<random>) have the same form.
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
