package main

import (
	"slices"
	"testing"
)

// The names contain the version in each format's form of a pre-release, which sorts before the release.
func TestTable_NamesPreReleases(t *testing.T) {
	r, err := newRelease(t.Context(), options{root: "../..", out: t.TempDir(), version: "1.4.0-rc.1", dirty: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	var names []string
	for _, a := range table(r) {
		names = append(names, a.name)
	}
	for _, want := range []string{
		"service-1.4.0-rc.1-linux-amd64.tar.gz", "service-1.4.0-rc.1-darwin-arm64.tar.gz",
		"service-1.4.0-rc.1-windows-arm64.zip",
		"service-toolkit_1.4.0~rc.1-1_amd64.deb", "service-toolkit-1.4.0~rc.1-1.x86_64.rpm",
		"service-toolkit_1.4.0_rc1-r1_x86_64.apk",
		"service-toolkit-1.4.0rc1-1-x86_64.pkg.tar.zst", "service-backend_1.4.0~rc.1-1_arm64.deb", "SHA256SUMS",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no %s in %q", want, names)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Error("two artefacts have one name")
	}
}

func TestNewRelease_RefusesOtherVersions(t *testing.T) {
	for _, version := range []string{"", "dev", "v1.4.0", "1.4", "1.4.0+build", "1.4.0/../x"} {
		o := options{root: "../..", out: t.TempDir(), version: version, dirty: true}
		if _, err := newRelease(t.Context(), o); err == nil {
			t.Errorf("version %q is accepted", version)
		}
	}
}

func TestParseTargets(t *testing.T) {
	got, err := parseTargets("linux-arm64,windows-amd64")
	if want := []target{{"linux", "arm64"}, {"windows", "amd64"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := parseTargets("linux-386"); err == nil {
		t.Error("an unknown target is accepted")
	}
}
