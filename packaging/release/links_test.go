package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestArchive_IsReachedThroughLinks runs the tests in test/e2e that install programs behind links and in versioned
// folders, with the programs of this machine's archive.
func TestArchive_IsReachedThroughLinks(t *testing.T) {
	tests := []string{
		"TestPrograms_ReachedThroughLinks", "TestUpgrade_OfVersionFoldersKeepsRegistrations", "TestAgentList_NamesStalePath",
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-C", "../..", "-count=1", "-v",
		"-run", "^("+strings.Join(tests, "|")+")$", "./test/e2e")
	cmd.Env = append(os.Environ(), "SERVICE_E2E_BIN="+linuxPrograms(t))
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	for _, test := range tests {
		if !strings.Contains(string(printed), "--- PASS: "+test) {
			t.Errorf("%s did not run:\n%s", test, printed)
		}
	}
}
