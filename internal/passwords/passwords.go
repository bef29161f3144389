// Package passwords defines which passwords are valid for an account of a backend.
package passwords

import (
	"fmt"
	"unicode/utf8"
)

// Limits of a password, in characters.
const (
	Min = 10
	Max = 200
)

// ErrLength is returned for a password that is too short or too long.
var ErrLength = fmt.Errorf("password must be %d to %d characters long", Min, Max)

// Check returns ErrLength if a password is too short or too long.
func Check(password string) error {
	if n := utf8.RuneCountInString(password); n < Min || n > Max {
		return ErrLength
	}
	return nil
}
