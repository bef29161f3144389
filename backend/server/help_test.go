package server

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHelp_FitsOneScreen expects all settings on a separate page, and short help everywhere else.
func TestHelp_FitsOneScreen(t *testing.T) {
	for _, command := range []string{"", "service", "service install", "admin", "admin trail", "settings"} {
		var out, errOut bytes.Buffer
		if code := Main(append(strings.Fields(command), "--help"), &out, &errOut); code != 0 {
			t.Fatalf("help of %s: got exit code %d, want 0: %s", command, code, errOut.String())
		}
		all := command == "settings"
		if strings.Contains(out.String(), "--trusted-proxies") != all || !strings.Contains(out.String(), "--config") {
			t.Errorf("%s: %s", command, out.String())
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) > 40 && !all {
			t.Errorf("the help of %s has %d lines, want at most 40", command, len(lines))
		}
		for _, line := range lines {
			if utf8.RuneCountInString(line) > 120 {
				t.Errorf("the help of %s has a line with more than 120 columns: %s", command, line)
			}
		}
	}
}
