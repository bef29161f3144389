package web

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// sentence turns an error message into a sentence.
func sentence(s string) string { return capital(strings.TrimRight(s, ".")) + "." }

func capital(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + s[n:]
}

// maxPrintable limits the result of printable, in characters.
const maxPrintable = 100

// printable sanitizes text sent by a client. The result is one line of limited length, without invisible characters or
// characters that change the writing direction.
func printable(s string) string {
	clean := strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) || c == unicode.ReplacementChar {
			return -1
		}
		return c
	}, s)
	if chars := []rune(clean); len(chars) > maxPrintable {
		clean = string(chars[:maxPrintable]) + "…"
	}
	if strings.TrimSpace(clean) == "" {
		return "unknown"
	}
	return clean
}

// oneLine replaces line breaks and control characters with spaces, and trims leading and trailing spaces.
func oneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c < 0x80 || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, "")))
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04 UTC") }

// ago formats the age of a time in minutes or hours, or its date if it is at least a day old. It returns "" for the
// zero time.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := now.Sub(t)
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return count(int(d.Minutes()), "minute") + " ago"
	case d < 24*time.Hour:
		return count(int(d.Hours()), "hour") + " ago"
	}
	return "on " + t.UTC().Format("2 Jan 2006")
}

func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// sentences joins the sentences that are not empty.
func sentences(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), " ")
}

// inWords lists names: "A", "A and B", "A, B and C".
func inWords(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
