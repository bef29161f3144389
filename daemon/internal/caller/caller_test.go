package caller

import (
	"os"
	"path/filepath"
	"testing"
)

func TestIsShared_CoversTheHomeDirectoryAndAbove(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, link := filepath.Join(base, "users", "ada"), filepath.Join(base, "ada")
	if err := os.MkdirAll(filepath.Join(home, "app"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(home, link); err != nil {
		t.Skip(err)
	}
	for _, value := range []string{home, link} {
		t.Setenv("HOME", value)
		t.Setenv("USERPROFILE", value)
		for dir, want := range map[string]bool{
			home: true, filepath.Dir(home): true, base: true, filepath.VolumeName(base) + string(filepath.Separator): true,
			filepath.Join(home, "app"): false, home + "b": false, "": false,
		} {
			if got := IsShared(dir); got != want {
				t.Errorf("HOME=%s: IsShared(%q) = %v, want %v", value, dir, got, want)
			}
		}
	}
}
