package main

import (
	"strings"
	"testing"
)

// TestPackage_KeepsAccountsApart uses the package with two accounts. Neither can read data of the other.
func TestPackage_KeepsAccountsApart(t *testing.T) {
	dir := copyFiles(t, map[string]string{"toolkit.deb": artefactOf(t, "service-toolkit_*_amd64.deb")})
	printed, _ := inRoot(t, "users.sh", dir)
	if strings.Contains(printed, "FAIL:") || !strings.Contains(printed, "== end") {
		t.Error("an account can reach the state of another")
	}
}
