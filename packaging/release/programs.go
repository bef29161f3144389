package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// target is a system and a processor, by their names in Go.
type target struct{ os, arch string }

// targets are those that a release has programs for.
var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

func (t target) String() string { return t.os + "-" + t.arch }

// program returns the name of a program's file.
func (t target) program(name string) string {
	if t.os == "windows" {
		return name + ".exe"
	}
	return name
}

// manifest is the file with the checksums of the adapters, without which the daemon runs none.
const manifest = "plugins.sha256"

// toolkitPackages are the programs that a person installs, server the one that an operator installs; adapters join the
// first. Every directory of plugins with a main.go is an adapter, as in the Makefile.
var (
	toolkitPackages = []string{"daemon/serviced", "ctl/servicectl", "ctl/service-mcp"}
	server          = "backend/service-backend"
)

// adapters returns the directories of the adapters below plugins, in order.
func (r *release) adapters() ([]string, error) {
	mains, err := filepath.Glob(filepath.Join(r.root, "plugins", "*", "main.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, main := range mains {
		names = append(names, filepath.Base(filepath.Dir(main)))
	}
	slices.Sort(names)
	return names, nil
}

// programs builds every program for a target, once, and returns their directory.
func (r *release) programs(ctx context.Context, t target) (string, error) {
	if dir := r.built[t]; dir != "" {
		return dir, nil
	}
	dir := filepath.Join(r.work, t.String())
	names := map[string]string{} // package directory -> program
	for _, p := range append(slices.Clone(toolkitPackages), server) {
		names[p] = filepath.Base(p)
	}
	adapters, err := r.adapters()
	if err != nil {
		return "", err
	}
	for _, a := range adapters {
		names["plugins/"+a] = "service-plugin-" + a
	}
	for p, name := range names {
		if err := r.build(ctx, t, p, filepath.Join(dir, t.program(name))); err != nil {
			return "", err
		}
	}
	if err := writeManifest(dir); err != nil {
		return "", err
	}
	r.built[t] = dir
	return dir, nil
}

// build compiles one program. The flags are those of the Makefile, with the commit's time for the build's.
func (r *release) build(ctx context.Context, t target, pkg, out string) error {
	const info = "github.com/service-dev/service/proto/buildinfo."
	flags := []string{
		"-s", "-w", "-buildid=",
		"-X", info + "Version=" + r.version,
		"-X", info + "Commit=" + r.commit,
		"-X", info + "BuiltAt=" + r.time.Format(time.RFC3339),
		"-X", info + "ReleaseURL=" + r.releaseURL,
	}
	cmd := command(ctx, r.root, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", strings.Join(flags, " "), "-o", out, "./"+pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s for %s: %w", pkg, t, err)
	}
	return nil
}

// writeManifest writes the checksums of the adapters beside them.
func writeManifest(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "service-plugin-*"))
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(data), filepath.Base(file))
	}
	return os.WriteFile(filepath.Join(dir, manifest), []byte(lines.String()), 0o644)
}
