package secret

import "regexp"

var anywhere = regexp.MustCompile(`\b(s[a-z]{2}_)[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}`)

// Redact leaves of every credential in text its prefix only. It is for what gets into logs from outside, such as paths.
func Redact(text string) string { return anywhere.ReplaceAllString(text, "$1...") }
