package analytics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A release is newer than its pre-releases.
func TestMostUsed_NewestIsTheRelease(t *testing.T) {
	got := mostUsed([]VersionUse{{Version: "1.10.0-beta", Sessions: 9}, {Version: "1.9.0", Sessions: 9},
		{Version: "1.10.0", Sessions: 1}})
	if got[0].Version != "1.10.0" || got[1].Version != "1.10.0-beta" {
		t.Errorf("got %v, want the release first and its pre-release second", got)
	}
}

// The newest of the most used versions comes first, and versions beyond the limit are left out.
func TestMostUsed(t *testing.T) {
	uses := []VersionUse{{Version: Other, Sessions: 5}, {Version: "0.1"}}
	for i := range maxNamed + 3 {
		uses = append(uses, VersionUse{Version: fmt.Sprintf("1.%d.0", i), Sessions: int64(i), Errors: 1})
	}
	got := mostUsed(uses)
	if len(got) != maxNamed || got[0].Version != "1.22.0" || got[len(got)-1].Version != Other ||
		slices.ContainsFunc(got, func(v VersionUse) bool { return v.Version == "1.0.0" || v.Version == "0.1" }) {
		t.Errorf("got %v, want the %d most used, the newest first and Other last", got, maxNamed)
	}
	rate, ok := VersionUse{Sessions: 8, Errors: 2}.ErrorsPer100Sessions()
	if _, none := (VersionUse{Errors: 2}).ErrorsPer100Sessions(); rate != 25 || !ok || none {
		t.Errorf("got a rate of %v (%t), and %t without sessions; want 25, true and false", rate, ok, none)
	}
}

// A summary names the version of an error only if more than half of the errors occurred in it.
func TestReading_NamesTheVersionOfMostErrors(t *testing.T) {
	r := Report{Series: make([]Point, 7), Interval: Day, Sessions: 80, Errors: 40, ByError: []Count{{"timeout", 40}}}
	for n, want := range map[int64]string{20: "40 of 40 errors.", 21: "mostly in version 1.0.0.", 40: "all in version 1.0.0."} {
		got := reading(r, Report{}, map[string]Count{"timeout": {"1.0.0", n}})
		if !strings.HasSuffix(got, want) {
			t.Errorf("with %d of 40 errors in one version: got %q, want it to end with %q", n, got, want)
		}
	}
}
