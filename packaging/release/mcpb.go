package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
)

// Bundles of MCP servers are made per system, not per processor. They contain no links for adapters, because the
// official tool unpacks a link as a file that contains the target's name. See
// https://github.com/modelcontextprotocol/mcpb, MANIFEST.md, version 0.3.

// mcpbs returns the bundles that Claude Desktop installs with one click.
func mcpbs(r *release) []artefact {
	intel := func(ctx context.Context) (string, error) { return r.programs(ctx, target{"windows", "amd64"}) }
	return []artefact{
		mcpb(r, "darwin", target{"darwin", "arm64"}, r.universalPrograms),
		mcpb(r, "win32", target{"windows", "amd64"}, intel), // Windows on Arm runs these as well
	}
}

// mcpb returns the artefact for a bundle. programs returns the directory of its programs; t selects the licences.
func mcpb(r *release, platform string, t target, programs func(context.Context) (string, error)) artefact {
	return artefact{mcpbName(r, platform), func(ctx context.Context, r *release, file string) error {
		dir, err := programs(ctx)
		if err != nil {
			return err
		}
		return r.writeMCPB(ctx, file, dir, platform, t)
	}}
}

func mcpbName(r *release, platform string) string {
	return "service-" + r.version + "-" + platform + ".mcpb"
}

// mcpbLicences returns the entry with the licences of the code in a bundle's programs.
func (r *release) mcpbLicences(ctx context.Context, t target) (entry, error) {
	third, err := r.thirdParty(ctx, t, "mcpb/"+t.String()+"/THIRD_PARTY", toolkitPackages...)
	third.name = "THIRD_PARTY"
	return third, err
}

// universalPrograms joins the programs for both processors of macOS into universal programs, and
// writes their manifest.
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
	t := target{os: "darwin"}
	for _, name := range t.programsOf(toolkitPackages) {
		thin := []string{filepath.Join(dirs[0], name), filepath.Join(dirs[1], name)}
		if err := writeFat(filepath.Join(dir, name), thin); err != nil {
			return "", err
		}
	}
	return dir, writeManifest(dir, t.program("serviced"))
}

// writeMCPB writes a bundle of the programs in dir, except the server, which users of a bundle do
// not need.
func (r *release) writeMCPB(ctx context.Context, file, dir, platform string, t target) error {
	third, err := r.mcpbLicences(ctx, t)
	if err != nil {
		return err
	}
	programs := programFiles(dir, "server", toolkitFiles(t))
	data, err := json.MarshalIndent(r.mcpbManifest(platform, t.program("service-mcp")), "", "  ")
	if err != nil {
		return err
	}
	description, err := r.write("mcpb/"+platform+"/manifest.json", string(data)+"\n")
	if err != nil {
		return err
	}
	return r.writeZip(file, append(programs,
		entry{name: "manifest.json", from: description, mode: 0o644},
		entry{name: "LICENSE", from: filepath.Join(r.root, "LICENSE"), mode: 0o644},
		third,
	))
}

// mcpbManifest is manifest.json of a bundle. Only a distribution with its own backend collects usage events; the
// manifest then contains the address of its privacy page.
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
