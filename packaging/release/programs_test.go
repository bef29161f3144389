package main

import (
	"os"
	"regexp"
	"testing"
)

// A release contains the same programs as `make build`.
func TestBuildTags_AreThoseOfTheMakefile(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^BUILD +=.* -tags (\S+) `).FindSubmatch(makefile)
	if found == nil || string(found[1]) != buildTags {
		t.Errorf("the Makefile's BUILD has the tags %q, want %s", found, buildTags)
	}
}
