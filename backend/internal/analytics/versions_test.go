package analytics

import (
	"slices"
	"testing"
)

func TestCompareVersions(t *testing.T) {
	want := []string{"", "0.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2",
		"1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.0+build.2", "1.9.0-rc1", "1.9", "1.9.0", "1.9.0a", "01.9.1", "1.10.0-beta",
		"v1.10.0", "2", "10", "another", "beta"}
	for i, a := range want {
		for j, b := range want {
			got := compareVersions(a, b)
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("compare %q with %q: got %d", a, b, got)
			}
		}
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, compareVersions)
	if !slices.Equal(got, want) {
		t.Errorf("got the order %q, want %q", got, want)
	}
	// Devices and other names are sorted too, with their numbers by value.
	if compareVersions("Even G2", "Even G10") >= 0 {
		t.Error("Even G10 precedes Even G2")
	}
}
