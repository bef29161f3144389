package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Limits, in bytes, on answers that an agent reads before it writes any code.
const (
	maxPlatformInfo    = 5_000
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

// The guide of one model describes how far the capability is proven on its real glasses, within the same limit.
func TestGetCapabilityGuide_SaysWhatIsProven(t *testing.T) {
	w := newWorld()
	for _, c := range []struct{ capability, model, want string }{
		{"display", "even_g1", "; real: emulated"}, {"microphone", "even_g1", "real: emulated"},
		{"camera", "brilliant_frame", "; real: emulated"}, {"time", "even_g1", ""},
		{"display", "even_g2", "; real: phone only, the vendor offers apps inside its phone app"},
		{"camera", "rayban_meta", "; real: phone only, Meta's Device Access Toolkit"},
	} {
		args := fmt.Sprintf(`{"capability":%q,"deviceModel":%q}`, c.capability, c.model)
		result, fields := w.call(t, "getCapabilityGuide", args, IO{})
		models, _ := fields["deviceModels"].(map[string]any)
		support, _ := models[c.model].(string)
		isMarked := strings.Contains(support, "real:")
		if !strings.Contains(support, c.want) || isMarked != (c.want != "") || strings.HasPrefix(support, ";") {
			t.Errorf("%s: got %q, want %q", args, support, c.want)
		}
		if n := len(result.Text); n > maxCapabilityGuide {
			t.Errorf("%s: %d bytes, want at most %d", args, n, maxCapabilityGuide)
		}
	}
}

// TestGetPlatformInfo_NamesServicectl expects the program's path if the program is installed, otherwise "".
func TestGetPlatformInfo_NamesServicectl(t *testing.T) {
	path := filepath.Join(t.TempDir(), "servicectl")
	if got := (getPlatformInfo{servicectl: path}).commandLine(); got != "" {
		t.Errorf("servicectl is not installed, but the answer names %s", got)
	}
	if err := os.WriteFile(path, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := getPlatformInfo{servicectl: path, transports: newWorld()}.run(t.Context(), call{}, struct{}{})
	if answer, ok := out.(platformInfoAnswer); err != nil || !ok || answer.Servicectl != path {
		t.Errorf("got %+v, %v; want %s", out, err, path)
	}
}
