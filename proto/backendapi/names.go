package backendapi

import "regexp"

// MaxModelID bounds the id of a model, in bytes.
const MaxModelID = 128

var nameForm = regexp.MustCompile(`^[A-Za-z0-9#][A-Za-z0-9._:@/+-]*$`)

// IsName reports whether text is an identifier of at most most bytes, without spaces or characters with a meaning to a
// terminal or a shell. An answer with another identifier is refused as a whole, so backends answer with no other.
func IsName(text string, most int) bool { return len(text) <= most && nameForm.MatchString(text) }
