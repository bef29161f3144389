package identity

import (
	"strings"
	"testing"
)

// The limits match the backend's (backend/internal/api): an install whose id the backend rejects could never link.
func TestRuleOfInstallID(t *testing.T) {
	for id, want := range map[string]bool{
		"inst_abcd": true, "inst_" + strings.Repeat("x", 64): true, "inst_A-b_9": true,
		"inst_abc": false, "inst_" + strings.Repeat("x", 65): false, "abcd": false, "inst_ab d": false, "inst_abcd\n": false,
	} {
		if validID(id) != want {
			t.Errorf("%q: want %v", id, want)
		}
	}
}
