package credit

import (
	"cmp"
	"errors"
	"math"
	"testing"
	"time"
)

func TestParseAmount(t *testing.T) {
	for text, want := range map[string]Amount{
		"5": 5 * USD, "5.00": 5 * USD, "0.0125": 12_500, "0.000001": 1, "007.5": 7_500_000, "0": 0, "1000000": MaxAmount,
	} {
		if got, err := ParseAmount(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "5.", ".5", "-5", "+5", "5,00", "1e3", "5.0000001", "1000000.01", "99999999", " 5", "٥",
		"5.00 USD", "0x5", "1_000"} {
		if got, err := ParseAmount(text); !errors.Is(err, ErrBadAmount) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func FuzzParseAmount(f *testing.F) {
	for _, text := range []string{"5.00", "0.0125", "-1", "9999999.999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAmount(text)
		if err != nil {
			return
		}
		if a < 0 || a > MaxAmount {
			t.Fatalf("%q is %d", text, a)
		}
		if again, err := ParseAmount(a.String()); err != nil || again != a {
			t.Fatalf("%q was parsed as %d, formatted as %s, and parsed again as %d (error %v)", text, a, a, again, err)
		}
	})
}

func TestAmount_String(t *testing.T) {
	for a, want := range map[Amount]string{
		0: "0.00", 1: "0.000001", -1_500_000: "-1.50", 12_500: "0.0125", 123_456_789: "123.456789",
		math.MinInt64: "-9223372036854.775808",
	} {
		if got := a.String(); got != want {
			t.Errorf("%d: %s", int64(a), got)
		}
	}
}

// Variations of an address that cost nothing to create do not earn more free credit.
func TestFreeCredit_AddressAndNetwork(t *testing.T) {
	for _, same := range []string{"ada@example.org", "Ada@Example.org", "ada+2@example.org", "ada+a+b@example.org"} {
		if got := addressOf(same); got != "ada@example.org" {
			t.Errorf("%s: %s", same, got)
		}
	}
	for ip, want := range map[string]string{
		"8.8.4.4": "8.8.4.0/24", "::ffff:8.8.4.4": "8.8.4.0/24", "2606:4700:4700:1::1": "2606:4700:4700::/48",
		"127.0.0.1": "", "::1": "", "10.1.2.3": "", "192.168.1.1": "", "fd00::1": "", "fe80::1%eth0": "", "0.0.0.0": "",
		"": "", "localhost": "",
	} {
		if got := networkOf(ip, false); got != want {
			t.Errorf("%s: %q", ip, got)
		}
		if got := networkOf(ip, true); got != cmp.Or(want, "unknown proxy") {
			t.Errorf("%s of a proxy: %q", ip, got)
		}
	}
}

func TestPeriods_AreOfUTC(t *testing.T) {
	at := time.Date(2026, 12, 31, 23, 30, 0, 0, time.FixedZone("west", -3600)) // 00:30 of the next year in UTC
	day, month := Periods(at)
	dayEnds, monthEnds := Resets(at)
	if day != "2027-01-01" || month != "2027-01" || !dayEnds.Equal(time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC)) ||
		!monthEnds.Equal(time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("got day %s and month %s, which end at %s and %s", day, month, dayEnds, monthEnds)
	}
}
