package uncleared

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMark_LastsUntilUnmark(t *testing.T) {
	dir := t.TempDir()
	if len(List(dir)) != 0 || Has(dir, Pair{"even_g1", "Even G1_27"}) {
		t.Error("a pair is marked before any was")
	}
	for _, p := range []Pair{
		{"even_g1", "Even G1_27"}, {"brilliant_frame", "../../Frame AB"}, {"brilliant_frame", "Frame\u202e \"ß\"/:*"},
	} {
		if err := Mark(dir, p); err != nil {
			t.Fatal(err)
		}
		if err := Mark(dir, p); err != nil {
			t.Errorf("again: %v", err)
		}
		if got := List(dir); !slices.Equal(got, []Pair{p}) || !Has(dir, p) {
			t.Errorf("got %q, want only %q", got, p)
		}
		if files, _ := filepath.Glob(filepath.Join(dir, folder, "*")); len(files) != 1 {
			t.Errorf("%q: got the files %q, want one in the folder", p, files)
		}
		if info, err := os.Stat(filepath.Join(dir, folder)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("got the folder %v (error %v), want mode 0700", info, err)
		}
		if err := Unmark(dir, p); err != nil || Has(dir, p) || len(List(dir)) != 0 {
			t.Errorf("%q is still marked (error %v)", p, err)
		}
		if err := Unmark(dir, p); err != nil {
			t.Errorf("again: %v", err)
		}
	}
}
