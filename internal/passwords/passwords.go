// Package passwords defines which passwords an account of a backend may have.
package passwords

import (
	"fmt"
	"unicode/utf8"
)

// Bounds of a password, in characters.
const (
	Min = 10
	Max = 200
)

// ErrLength reports a password that is too short or too long.
var ErrLength = fmt.Errorf("password must have %d to %d characters", Min, Max)

// Check returns ErrLength for a password that no account may have.
func Check(password string) error {
	if n := utf8.RuneCountInString(password); n < Min || n > Max {
		return ErrLength
	}
	return nil
}
