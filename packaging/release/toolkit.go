package main

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// toolkit is the package for app developers. Its programs are installed in one directory, toolkitDir, so that they
// find each other. No unit is enabled and no script runs, so that the package does not affect users who do not use
// the service.
var toolkit = osPackage{
	name: "service-toolkit", section: "devel", group: "Development/Tools",
	description: "build apps for smart glasses with a coding agent\n" +
		"The daemon serviced with its adapters, the command line servicectl, and\n" +
		"service-mcp, which coding agents start. Each user's daemon starts on demand.",
	programs: []string{"servicectl", "service-mcp", "serviced"},
	archive:  "service",
	packages: toolkitPackages,
	contents: toolkitContents,
}

// manifest is the file with the checksum of the program that contains the adapters, and of the links to it. Without
// it, the daemon runs no adapter.
const manifest = "plugins.sha256"

// toolkitFiles returns the files that belong in one directory.
func toolkitFiles(t target) []string { return append(t.programsOf(toolkitPackages), manifest) }

// toolkitPrograms builds the programs for a target and returns them, the manifest and the links of the adapters as
// entries in folder.
func (r *release) toolkitPrograms(ctx context.Context, t target, folder string) ([]entry, error) {
	all, err := r.programEntries(ctx, t, folder, toolkitFiles(t))
	if err != nil {
		return nil, err
	}
	links, err := r.adapterLinks(t)
	for _, name := range links {
		all = append(all, entry{name: path.Join(folder, name), link: "serviced"})
	}
	return all, err
}

const (
	toolkitDir = "usr/lib/service"
	userUnits  = "usr/lib/systemd/user"
)

func toolkitContents(ctx context.Context, r *release, t target, format string) ([]entry, error) {
	all, err := r.toolkitPrograms(ctx, t, toolkitDir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"servicectl", "service-mcp"} {
		all = append(all, entry{name: "usr/bin/" + name, link: "../lib/service/" + name})
	}
	all = append(all, r.examples("usr/share/service-toolkit/examples")...)
	if format == "apk" {
		return all, nil // Alpine has no systemd
	}
	units, err := r.userUnits()
	return append(all, units...), err
}

// userUnits writes the packaged form of the units of `servicectl service install`, which is the same for all users.
func (r *release) userUnits() ([]entry, error) {
	var all entries
	for _, name := range []string{"serviced.service", "serviced.socket"} {
		template, err := os.ReadFile(filepath.Join(r.root, "daemon/internal/osservice/templates", name))
		all.add(nil, err)
		all.addOne(r.generated(path.Join(userUnits, name), userUnit(string(template), name)))
	}
	return all.list, all.err
}

// userUnit returns the packaged form of a template of daemon/internal/osservice. systemd expands %h to the user's
// home directory.
func userUnit(template, name string) string {
	_, body, _ := strings.Cut(template, "[Unit]\n")
	header := "# Part of the package service-toolkit; `servicectl service install` enables it. Put your own changes " +
		"into a\n# drop-in (`systemctl --user edit " + name + "`), which is kept.\n[Unit]\n"
	return header + strings.NewReplacer(
		"{{name}}", "serviced",
		"{{program}}", "/"+toolkitDir+"/serviced",
		"{{environment}}", "SERVICE_CONFIG_DIR=%h/.service",
		"{{control}}", "%h/.service/run/control.sock",
		"{{mcp}}", "%h/.service/run/mcp.sock",
	).Replace(body)
}
