package account

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzEmail(f *testing.F) {
	for _, s := range []string{"ada@example.org", " ADA@Example.org", "a@b\r\nBcc: x@y", "Ada <ada@example.org>",
		"\"a b\"@c", "ö@ö.example"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, given string) {
		email, err := normalizeEmail(given)
		if err != nil {
			return
		}
		if strings.ContainsAny(email, "\r\n\t <>,;") || strings.Count(email, "@") < 1 || len(email) > 254 {
			t.Errorf("%q was normalised to the invalid address %q", given, email)
		}
		if again, err := normalizeEmail(email); err != nil || again != email {
			t.Errorf("normalise %q again: got %q, error %v, want no change", email, again, err)
		}
	})
}

func FuzzUserAgent(f *testing.F) {
	f.Add("Mozilla/5.0 (X11; Linux x86_64)")
	f.Add("a\x00b\nc\xff")
	f.Fuzz(func(t *testing.T, given string) {
		if got := clip(given, maxAgent); len(got) > maxAgent || !utf8.ValidString(got) || strings.ContainsAny(got,
			"\x00\r\n") {
			t.Errorf("%q was clipped to the invalid text %q", given, got)
		}
	})
}
