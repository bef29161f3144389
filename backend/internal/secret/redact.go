package secret

import "regexp"

var anywhere = regexp.MustCompile(`\b(s[a-z]{2}_)[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}`)

// Redact shortens every credential in text to its prefix. Use it before logging text from outside, such as paths.
func Redact(text string) string { return anywhere.ReplaceAllString(text, "$1...") }
