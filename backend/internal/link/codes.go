package link

import (
	"crypto/rand"
	"strings"
)

// alphabet contains no vowels and no letters that look like digits (RFC 8628 section 6.1).
const alphabet = "BCDFGHJKLMNPQRSTVWXZ"

const userCodeLetters = 8

// newUserCode returns eight uniformly random letters in the form XXXX-XXXX.
func newUserCode() string {
	var out [userCodeLetters]byte
	const fair = 256 - 256%len(alphabet) // accepting larger bytes would favour the first letters
	var b [1]byte
	for i := 0; i < len(out); {
		rand.Read(b[:])
		if int(b[0]) < fair {
			out[i] = alphabet[int(b[0])%len(alphabet)]
			i++
		}
	}
	return string(out[:4]) + "-" + string(out[4:])
}

// NormalizeUserCode converts a code typed in any case, with or without dash or spaces, to the form XXXX-XXXX. It
// returns false for anything else.
func NormalizeUserCode(s string) (string, bool) {
	if len(s) > 32 {
		return "", false
	}
	var out []byte
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		switch {
		case c == '-' || c == ' ':
		case strings.IndexByte(alphabet, c) >= 0 && len(out) < userCodeLetters:
			out = append(out, c)
		default:
			return "", false
		}
	}
	if len(out) != userCodeLetters {
		return "", false
	}
	return string(out[:4]) + "-" + string(out[4:]), true
}
