package tools

import (
	"os"
	"path/filepath"
	"testing"
)

// Limits, in bytes, on answers that an agent reads before it writes any code.
const (
	maxPlatformInfo    = 4_800
	maxCapabilityGuide = 5_000
)

// TestGuides_AreSmall measures the texts that agents read.
func TestGuides_AreSmall(t *testing.T) {
	w := newWorld()
	for name, most := range map[string]int{"getPlatformInfo": maxPlatformInfo, "getCapabilityGuide": maxCapabilityGuide} {
		for _, args := range answersToWalk()[name] {
			result, _ := w.call(t, name, args, IO{})
			if n := len(result.Text); n > most || n == 0 {
				t.Errorf("%s %s: %d bytes, want 1 to %d", name, args, n, most)
			} else {
				t.Logf("%s %s: %d bytes", name, args, n)
			}
		}
	}
}

// TestGetPlatformInfo_NamesServicectl expects the program's path if it is in the daemon's folder, otherwise none.
func TestGetPlatformInfo_NamesServicectl(t *testing.T) {
	dir := t.TempDir()
	if got := (getPlatformInfo{programs: dir}).servicectl(); got != "" {
		t.Errorf("servicectl is not installed, but the answer names %s", got)
	}
	path := filepath.Join(dir, "servicectl"+programSuffix())
	if err := os.WriteFile(path, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := getPlatformInfo{programs: dir}.run(t.Context(), call{}, struct{}{})
	if answer, ok := out.(platformInfoAnswer); err != nil || !ok || answer.Servicectl != path {
		t.Errorf("got %+v, %v; want %s", out, err, path)
	}
}
