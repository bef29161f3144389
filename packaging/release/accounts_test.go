package main

import (
	"strings"
	"testing"
)

// TestPackage_KeepsAccountsApart uses the package with two accounts: neither can read anything of the other.
func TestPackage_KeepsAccountsApart(t *testing.T) {
	printed, _ := inRoot(t, "users.sh", copyFiles(t, map[string]string{"toolkit.deb": artefactOf(t, "service-toolkit_*_amd64.deb")}))
	if strings.Contains(printed, "FAIL:") || !strings.Contains(printed, "== end") {
		t.Error("an account can reach the state of another")
	}
}
