package tools

import (
	"strings"
	"testing"
)

// Answers report that the settings that only a voice assistant would use have no effect.
func TestAssistantTools_SayWhatHasNoEffect(t *testing.T) {
	w := newWorld().linked()
	const words = "No effect on this backend yet: "
	for _, tool := range []string{"getAssistantConfig", "setAssistantConfig"} {
		_, fields := w.record(t, tool, nil)
		if summary, _ := fields["summary"].(string); !strings.HasPrefix(summary, words) {
			t.Errorf("%s: got %v, want a summary that begins with %q", tool, fields, words)
		}
	}
}
