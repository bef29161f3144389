package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/internal/programpath"
)

// target is an operating system and a processor, by their names in Go.
type target struct{ os, arch string }

// targets lists all targets for which a release contains programs.
var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

func (t target) String() string { return t.os + "-" + t.arch }

// parseTargets parses a comma-separated list of targets. An empty list means all.
func parseTargets(list string) ([]target, error) {
	if list == "" {
		return targets, nil
	}
	var chosen []target
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(targets, func(t target) bool { return t.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown target %q: choose from %v", name, targets)
		}
		chosen = append(chosen, targets[i])
	}
	return chosen, nil
}

// program returns the file name of a program.
func (t target) program(name string) string {
	if t.os == "windows" {
		return name + ".exe"
	}
	return name
}

// Main packages of the programs, by who installs them: users or operators.
var (
	toolkitPackages = []string{"./daemon/serviced", "./ctl/servicectl", "./ctl/service-mcp"}
	serverPackages  = []string{"./backend/service-backend"}
)

// programsOf returns the file names of the programs built from main packages.
func (t target) programsOf(packages []string) []string {
	var names []string
	for _, pkg := range packages {
		names = append(names, t.program(path.Base(pkg)))
	}
	return names
}

// programs builds every program for a target on the first call, and returns their directory.
func (r *release) programs(ctx context.Context, t target) (string, error) {
	if dir := r.built[t]; dir != "" {
		return dir, nil
	}
	if len(r.built) == 0 {
		// The backend embeds the simulator page's program. Without --always-make, make would reuse a program that
		// another compiler built.
		wasm := command(ctx, r.root, "make", "--silent", "--always-make", "wasm")
		wasm.Env = buildEnv()
		if err := wasm.Run(); err != nil {
			return "", fmt.Errorf("build the simulator page's program: %w", err)
		}
	}
	dir := filepath.Join(r.work, t.String())
	if err := r.build(ctx, t, dir, slices.Concat(toolkitPackages, serverPackages)); err != nil {
		return "", err
	}
	links, err := r.adapterLinks(t)
	if err != nil {
		return "", err
	}
	if err := writeManifest(dir, t.program("serviced"), links...); err != nil {
		return "", err
	}
	r.built[t] = dir
	return dir, nil
}

// buildTags are the same as in the Makefile.
const buildTags = "grpcnotrace"

// build compiles programs into a directory. The flags are the same as in the Makefile, but the build time is the
// commit time.
func (r *release) build(ctx context.Context, t target, dir string, packages []string) error {
	const info = "github.com/service-dev/service/internal/buildinfo."
	flags := []string{
		"-s", "-w", "-buildid=",
		"-X", info + "Version=" + r.version,
		"-X", info + "Commit=" + r.commit,
		"-X", info + "BuiltAt=" + r.time.Format(time.RFC3339),
		"-X", info + "DefaultBackendURL=" + r.backendURL,
		"-X", info + "ReleaseURL=" + r.releaseURL,
		"-X", info + "ReleaseKey=" + r.releaseKey,
	}
	args := []string{"build", "-tags", buildTags, "-trimpath", "-buildvcs=false", "-ldflags", strings.Join(flags, " "),
		"-o", dir + "/"}
	cmd := command(ctx, r.root, "go", append(args, packages...)...)
	cmd.Env = append(buildEnv(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build for %s: %w", t, err)
	}
	return nil
}

// buildEnv returns the environment without variables that would change the programs. It sets GOFLAGS to a non-empty
// value, because go uses the user's setting if GOFLAGS is empty.
func buildEnv() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "GOEXPERIMENT=") || strings.HasPrefix(v, "MAKEFLAGS=") || strings.HasPrefix(v, "GOOS=") ||
			strings.HasPrefix(v, "GOARCH=")
	})
	return append(env, "GOFLAGS=-mod=readonly", "GOWORK=off", "GOFIPS140=off")
}

// adapterLinks returns the names of the links to serviced in the packages for a target: one for each adapter, as in
// the Makefile. On Windows there are none, because creating a link requires a privilege; the daemon starts serviced
// itself instead.
func (r *release) adapterLinks(t target) ([]string, error) {
	if t.os == "windows" {
		return nil, nil
	}
	dirs, err := os.ReadDir(filepath.Join(r.root, "plugins"))
	var links []string
	for _, d := range dirs {
		if strings.HasPrefix(d.Name(), programpath.AdapterPrefix) {
			links = append(links, d.Name())
		}
	}
	return links, err
}

// writeManifest writes the manifest to dir: the checksum of the program that contains the adapters, under its name and
// the names of the links to it. The daemon treats a name in the manifest without a file as a damaged installation.
func writeManifest(dir, program string, links ...string) error {
	data, err := os.ReadFile(filepath.Join(dir, program))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	var lines []byte
	for _, name := range append([]string{program}, links...) {
		lines = fmt.Appendf(lines, "%x  %s\n", sum, name)
	}
	return os.WriteFile(filepath.Join(dir, manifest), lines, 0o644)
}
