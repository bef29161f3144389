package link

import (
	"os"
	"strings"
	"testing"
)

// chiSquare returns the chi-square statistic of counts against a uniform distribution.
func chiSquare(counts []int) float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	expected, sum := float64(total)/float64(len(counts)), 0.0
	for _, n := range counts {
		d := float64(n) - expected
		sum += d * d / expected
	}
	return sum
}

// The test draws a million codes (a tenth in CI). It checks the alphabet, and that every letter is equally likely at
// every position. With 19 degrees of freedom, a fair draw exceeds 90 once in 10^10 runs. Preferring 16 of the 20
// letters, as a plain remainder would, gives more than 200.
func TestNewUserCode_IsUniform(t *testing.T) {
	codes := 100_000
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		codes = 1_000_000
	}
	var places [userCodeLetters][len(alphabet)]int
	for range codes {
		code := newUserCode()
		if len(code) != 9 || code[4] != '-' {
			t.Fatalf("got code %q, want the form XXXX-XXXX", code)
		}
		for i, c := range []byte(code[:4] + code[5:]) {
			at := strings.IndexByte(alphabet, c)
			if at < 0 {
				t.Fatalf("got code %q with a letter outside the alphabet", c)
			}
			places[i][at]++
		}
	}
	for i, counts := range places {
		if x := chiSquare(counts[:]); x > 90 {
			t.Errorf("letter %d: got chi-square %.0f for counts %v, want at most 90", i+1, x, counts)
		}
	}
}

// All spellings of a code are normalised to the same form.
func TestNormalizeUserCode(t *testing.T) {
	for _, s := range []string{"WDJB-MJHT", "wdjb mjht", "WDJBMJHT", "wdjb-mjht", " wDjB--MjHt ", "w d j b m j h t"} {
		if got, ok := NormalizeUserCode(s); !ok || got != "WDJB-MJHT" {
			t.Errorf("normalise %q: got %q, %v, want WDJB-MJHT", s, got, ok)
		}
	}
	for _, s := range []string{"", "WDJB-MJH", "WDJB-MJHTT", "ADJB-MJHT", "WDJB_MJHT", "WDJB-MJH1", "WDJB\u2013MJHT",
		"WDJB\tMJHT",
		strings.Repeat("-", 25) + "WDJBMJHT", "ＷDJBMJHT", "\x00WDJBMJHT"} {
		if got, ok := NormalizeUserCode(s); ok {
			t.Errorf("the invalid code %q was accepted as %q", s, got)
		}
	}
}

// FuzzNormalizeUserCode checks that a code has exactly one normal form, and that nothing else is accepted.
func FuzzNormalizeUserCode(f *testing.F) {
	for _, seed := range []string{"WDJB-MJHT", "wdjb mjht", "", "-", "AEIO-UYAE", "WDJBMJHT\x00", "\xff\xfe", "WDJBMJHTX",
		strings.Repeat(" ", 33)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := NormalizeUserCode(s)
		if !ok {
			if got != "" {
				t.Fatalf("%q was refused, but the result is %q, want none", s, got)
			}
			return
		}
		if again, ok := NormalizeUserCode(got); !ok || again != got {
			t.Fatalf("%q was normalised to %q, and that to %q, want no second change", s, got, again)
		}
		if len(got) != 9 || got[4] != '-' || strings.Trim(got[:4]+got[5:], alphabet) != "" {
			t.Fatalf("%q was normalised to the invalid code %q", s, got)
		}
		plain := strings.NewReplacer("-", "", " ", "").Replace(s)
		if !strings.EqualFold(plain, got[:4]+got[5:]) {
			t.Fatalf("%q was normalised to a different code: %q", s, got)
		}
	})
}
