package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
)

// Bundles of MCP servers are by system, not by processor.
// See https://github.com/modelcontextprotocol/mcpb, MANIFEST.md, version 0.3.

// mcpbs are the bundles by which Claude Desktop installs the service with one click.
func mcpbs(r *release) []artefact {
	return []artefact{
		{mcpbName(r, "darwin"), func(ctx context.Context, r *release, file string) error {
			dir, err := r.universalPrograms(ctx)
			if err != nil {
				return err
			}
			return r.writeMCPB(file, dir, "darwin", "service-mcp")
		}},
		{mcpbName(r, "win32"), func(ctx context.Context, r *release, file string) error {
			// Windows on Arm runs these as well.
			dir, err := r.programs(ctx, target{"windows", "amd64"})
			if err != nil {
				return err
			}
			return r.writeMCPB(file, dir, "win32", "service-mcp.exe")
		}},
	}
}

func mcpbName(r *release, platform string) string {
	return "service-" + r.version + "-" + platform + ".mcpb"
}

// universalPrograms joins the programs for both processors of macOS, with a manifest of what results.
func (r *release) universalPrograms(ctx context.Context) (string, error) {
	dir := filepath.Join(r.work, "darwin-universal")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	var dirs []string
	for _, arch := range []string{"amd64", "arm64"} {
		one, err := r.programs(ctx, target{"darwin", arch})
		if err != nil {
			return "", err
		}
		dirs = append(dirs, one)
	}
	files, err := os.ReadDir(dirs[0])
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if f.Name() == manifest || f.Name() == filepath.Base(server) {
			continue
		}
		thin := []string{filepath.Join(dirs[0], f.Name()), filepath.Join(dirs[1], f.Name())}
		if err := writeFat(filepath.Join(dir, f.Name()), thin); err != nil {
			return "", err
		}
	}
	return dir, writeManifest(dir)
}

// writeMCPB writes a bundle of the programs in dir without the server, which a person does not need.
func (r *release) writeMCPB(file, dir, platform, program string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	description := filepath.Join(r.work, platform+"-manifest.json")
	data, err := json.MarshalIndent(r.mcpbManifest(platform, program), "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(description, string(data)+"\n"); err != nil {
		return err
	}
	entries := []entry{
		{name: "manifest.json", from: description, mode: 0o644},
		{name: "LICENSE", from: filepath.Join(r.root, "LICENSE"), mode: 0o644},
	}
	for _, f := range files {
		if name := f.Name(); name == filepath.Base(server) || name == filepath.Base(server)+".exe" {
			continue
		}
		mode := int64(0o755)
		if f.Name() == manifest {
			mode = 0o644
		}
		entries = append(entries, entry{name: "server/" + f.Name(), from: filepath.Join(dir, f.Name()), mode: mode})
	}
	return r.writeZip(file, entries)
}

// mcpbManifest is manifest.json of a bundle. The service collects usage events only for the backend of a distribution,
// whose privacy page is then named.
func (r *release) mcpbManifest(platform, program string) map[string]any {
	m := map[string]any{
		"manifest_version": "0.3",
		"name":             "service",
		"display_name":     "The service: apps for smart glasses",
		"version":          r.version,
		"description":      description,
		"author":           map[string]any{"name": vendor, "url": homepage},
		"repository":       map[string]any{"type": "git", "url": homepage},
		"homepage":         homepage,
		"license":          "Apache-2.0",
		"keywords":         []string{"smart glasses", "simulator", "testing"},
		"server": map[string]any{
			"type":        "binary",
			"entry_point": "server/" + program,
			"mcp_config":  map[string]any{"command": "${__dirname}/server/" + program, "args": []string{}},
		},
		"tools_generated": true,
		"compatibility":   map[string]any{"platforms": []string{platform}},
	}
	if r.backendURL != "" {
		m["privacy_policies"] = []string{r.backendURL + "/docs/privacy"}
	}
	return m
}
