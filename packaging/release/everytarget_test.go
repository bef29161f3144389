package main

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxDownload is the maximum size in bytes of the download that installs the service on one system.
const maxDownload = 40_000_000

// TestArchives_OfThisMachineAreSmall checks every form of the toolkit for Linux on amd64.
func TestArchives_OfThisMachineAreSmall(t *testing.T) {
	for _, pattern := range []string{
		"service-[0-9]*-linux-amd64.tar.gz", "service-toolkit_*_amd64.deb", "service-toolkit-*.x86_64.rpm",
		"service-toolkit_*_x86_64.apk", "service-toolkit-*-x86_64.pkg.tar.zst",
	} {
		isSmall(t, artefactOf(t, pattern))
	}
}

// TestRelease_MakesEveryTarget makes the artefacts for the other systems and processors. They cannot run here, so it
// checks the targets of their programs, the size of the archives and the adapters in them.
func TestRelease_MakesEveryTarget(t *testing.T) {
	var names []string
	for _, other := range targets[1:] {
		names = append(names, other.String())
	}
	r, err := newRelease(t.Context(), options{
		root: "../..", out: t.TempDir(), version: testVersion, targets: strings.Join(names, ","), dirty: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if err := r.makeAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, other := range r.chosen {
		for _, p := range []osPackage{toolkit, serverPackage} {
			isSmall(t, filepath.Join(r.out, archive(r, p, other).name))
		}
		checkAdaptersOf(t, filepath.Join(r.out, archive(r, toolkit, other).name))
		for _, name := range other.programsOf(slices.Concat(toolkitPackages, serverPackages)) {
			data, err := os.ReadFile(filepath.Join(r.built[other], name))
			if err != nil {
				t.Fatal(err)
			}
			if got := madeFor(data); got != other.String() {
				t.Errorf("%s is for %s, want %s", name, got, other)
			}
		}
	}
}

func isSmall(t *testing.T, file string) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %.1f MB", filepath.Base(file), float64(info.Size())/1e6)
	if info.Size() > maxDownload {
		t.Errorf("%s has %d bytes, the maximum is %d", filepath.Base(file), info.Size(), maxDownload)
	}
}

// madeFor returns the target of a program, read from the header of its file.
func madeFor(program []byte) string {
	arch := map[any]string{
		elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64",
		uint16(pe.IMAGE_FILE_MACHINE_AMD64): "amd64", uint16(pe.IMAGE_FILE_MACHINE_ARM64): "arm64",
	}
	if f, err := elf.NewFile(bytes.NewReader(program)); err == nil {
		return "linux-" + arch[f.Machine]
	}
	if f, err := macho.NewFile(bytes.NewReader(program)); err == nil {
		return "darwin-" + arch[f.Cpu]
	}
	if f, err := pe.NewFile(bytes.NewReader(program)); err == nil {
		return "windows-" + arch[f.Machine]
	}
	return fmt.Sprintf("an unknown system (% x)", program[:min(4, len(program))])
}
