package main

import (
	"strings"
	"testing"
)

// TestK12_AccountsOfOneMachine uses the package with two accounts: neither can read anything of the other.
func TestK12_AccountsOfOneMachine(t *testing.T) {
	printed, _ := inRoot(t, "users.sh", goods(t, map[string]string{"toolkit.deb": artefactOf(t, "service-toolkit_*_amd64.deb")}))
	if strings.Contains(printed, "FAIL:") || !strings.Contains(printed, "== end") {
		t.Error("an account can reach the state of another")
	}
}
