package buildinfo

import "testing"

func TestCompare(t *testing.T) {
	// The versions are in ascending order; versions on one line are equal.
	ordered := [][]string{
		{"0.9.9"}, {"1.0.0-alpha"}, {"1.0.0-alpha.1"}, {"1.0.0-alpha.beta"}, {"1.0.0-beta"}, {"1.0.0-beta.2"}, {"1.0.0-beta.11"}, {"1.0.0-rc.1"},
		{"1.0.0", "1.0.0+build.7", "v1.0.0"}, {"1.0.1"}, {"1.2.0", "1.2.0+deb12"}, {"1.10.0"}, {"2.0.0"}, {"10.0.0"},
	}
	for i, lower := range ordered {
		for j, higher := range ordered {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			for _, a := range lower {
				for _, b := range higher {
					if got, ok := Compare(a, b); !ok || got != want {
						t.Errorf("Compare(%s, %s) = %d, %v; want %d", a, b, got, ok, want)
					}
				}
			}
		}
	}
	for _, bad := range []string{"dev", "", "1", "1.2", "1.2.x", "1.02.3", "1.2.3-", "1.2.3-a..b", "-1.2.3"} {
		if _, ok := Compare(bad, "1.0.0"); ok {
			t.Errorf("Compare accepted the invalid version %q", bad)
		}
	}
}
