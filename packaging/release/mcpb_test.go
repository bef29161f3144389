package main

import (
	"bytes"
	"debug/macho"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mcpbDescription is manifest.json of a bundle; see MANIFEST.md of modelcontextprotocol/mcpb, version 0.3.
type mcpbDescription struct {
	ManifestVersion string `json:"manifest_version"`
	Name            string `json:"name"`
	DisplayName     string `json:"display_name"`
	Version         string `json:"version"`
	Description     string `json:"description"`
	Author          struct{ Name, URL string }
	Repository      struct{ Type, URL string }
	Homepage        string
	License         string
	Keywords        []string
	Server          struct {
		Type       string `json:"type"`
		EntryPoint string `json:"entry_point"`
		MCPConfig  struct {
			Command string
			Args    []string
		} `json:"mcp_config"`
	}
	ToolsGenerated  bool     `json:"tools_generated"`
	PrivacyPolicies []string `json:"privacy_policies"`
	Compatibility   struct{ Platforms []string }
}

// mcpbBundles checks that the bundles are valid, complete and reproducible.
func mcpbBundles(t *testing.T, r *release) {
	t.Helper()
	mcpb := npmProgram(t, "npm", ".bin/mcpb", "make npm")
	for platform, suffix := range map[string]string{"darwin": "", "win32": ".exe"} {
		t.Run(platform, func(t *testing.T) {
			file := filepath.Join(r.out, mcpbName(r, platform))
			dir := unzip(t, file)
			if out, err := judge(t, mcpb, "validate", filepath.Join(dir, "manifest.json")); err != nil {
				t.Errorf("mcpb validate: %v\n%s", err, out)
			}
			checkMCPB(t, dir, platform, suffix)
			again := filepath.Join(t.TempDir(), "again.mcpb")
			for _, a := range mcpbs(r) {
				if a.name != filepath.Base(file) {
					continue
				}
				if err := a.make(t.Context(), r, again); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(must(os.ReadFile(file)), must(os.ReadFile(again))) {
				t.Error("two bundles of the same release differ")
			}
		})
	}
	backend := *r
	backend.backendURL = "https://service.example.org"
	got := fmt.Sprint(backend.mcpbManifest("win32", "x")["privacy_policies"])
	if got != "[https://service.example.org/docs/privacy]" {
		t.Errorf("a distribution with a backend names the privacy policies %s", got)
	}
}

// checkMCPB fails unless every path in the manifest exists and is executable, and the adapters have their checksums.
func checkMCPB(t *testing.T, dir, platform, suffix string) {
	t.Helper()
	var m mcpbDescription
	readJSON(t, filepath.Join(dir, "manifest.json"), &m)
	if m.ManifestVersion != "0.3" || m.Server.Type != "binary" || !m.ToolsGenerated || len(m.PrivacyPolicies) > 0 ||
		len(m.Compatibility.Platforms) != 1 || m.Compatibility.Platforms[0] != platform {
		t.Errorf("the manifest is not as it should be: %+v", m)
	}
	command, isInside := strings.CutPrefix(m.Server.MCPConfig.Command, "${__dirname}/")
	if !isInside || command != m.Server.EntryPoint {
		t.Errorf("the bundle starts %s, but its entry point is %s", m.Server.MCPConfig.Command, m.Server.EntryPoint)
	}
	checkManifest(t, filepath.Join(dir, "server"), "serviced"+suffix)
	for _, name := range []string{"service-mcp", "serviced", "servicectl"} {
		file := filepath.Join(dir, "server", name+suffix)
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", name, err, info)
			continue
		}
		if platform == "darwin" {
			checkUniversal(t, file)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "server", "service-backend*")); len(files) > 0 {
		t.Errorf("the bundle has %q", files)
	}
}

// checkUniversal fails unless a program contains both macOS processors.
func checkUniversal(t *testing.T, file string) {
	t.Helper()
	fat, err := macho.OpenFat(file)
	if err != nil {
		t.Fatal(err)
	}
	defer fat.Close()
	for i, cpu := range []macho.Cpu{macho.CpuAmd64, macho.CpuArm64} {
		if len(fat.Arches) != 2 || fat.Arches[i].Cpu != cpu || fat.Arches[i].Type != macho.TypeExec ||
			fat.Arches[i].Offset%(1<<fatAlign) != 0 {
			t.Errorf("%s has the parts %v", filepath.Base(file), fat.Arches)
		}
	}
}

// mcpbRuns unpacks a bundle of this machine's programs with the official mcpb tool. A real client then starts the
// program named in the manifest, and gets answers from the daemon and an adapter in the same folder.
func mcpbRuns(t *testing.T, r *release) {
	t.Helper()
	file, dir := filepath.Join(t.TempDir(), "linux.mcpb"), filepath.Join(t.TempDir(), "unpacked")
	programs := linuxPrograms(t)
	if err := writeManifest(programs, "serviced"); err != nil { // a bundle has no links
		t.Fatal(err)
	}
	if err := r.writeMCPB(t.Context(), file, programs, "linux", target{"linux", "amd64"}); err != nil {
		t.Fatal(err)
	}
	if out, err := judge(t, npmProgram(t, "npm", ".bin/mcpb", "make npm"), "unpack", file, dir); err != nil {
		t.Fatalf("mcpb unpack: %v\n%s", err, out)
	}
	var m mcpbDescription
	readJSON(t, filepath.Join(dir, "manifest.json"), &m)
	program := strings.ReplaceAll(m.Server.MCPConfig.Command, "${__dirname}", dir)
	node := npmProgram(t, "../../test/e2e/npm", "node/bin/node", "make npm")
	inspector := npmProgram(t, "../../test/e2e/npm", ".bin/mcp-inspector", "make npm")
	state := filepath.Join(t.TempDir(), "state")
	for tool, want := range map[string]string{"getPlatformInfo": "deviceModels", "startLocalSimulation": "appEndpoint"} {
		out, err := judge(t, node, inspector, "--cli", "--method", "tools/call", "--tool-name", tool, "--format", "json",
			"-e", "SERVICE_CONFIG_DIR="+state, program)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", tool, err, out)
		}
	}
	stop := must(filepath.Abs(filepath.Join(dir, "server", "servicectl")))
	t.Setenv("SERVICE_CONFIG_DIR", state)
	output(t, stop, "daemon", "stop")
}
