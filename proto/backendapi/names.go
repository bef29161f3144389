package backendapi

import (
	"regexp"
	"sync"
)

// MaxModelID is the maximum length of a model id in bytes.
const MaxModelID = 128

var nameForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9#][A-Za-z0-9._:@/+-]*$`)
})

// IsName reports whether text is a valid identifier of at most most bytes. It must not contain spaces or characters
// that are special in a terminal or shell. A response that contains any other identifier is refused as a whole.
func IsName(text string, most int) bool { return len(text) <= most && nameForm().MatchString(text) }
