package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

// registryModule publishes the schema of server.json.
const registryModule = "github.com/modelcontextprotocol/registry@v1.8.7"

// serverJSON checks server.json against the schema of the MCP registry and against the files of the release.
func serverJSON(t *testing.T, r *release) {
	t.Helper()
	data := must(os.ReadFile(filepath.Join(r.out, "server.json")))
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	schema := registrySchema(t)
	if err := schema.Validate(value); err != nil {
		t.Error(err)
	}
	var s struct {
		Name, Description, Version string
		Packages                   []struct{ RegistryType, Identifier, FileSHA256 string }
	}
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Description) > 100 || s.Version != r.version || len(s.Packages) != 2 {
		t.Errorf("server.json is not as it should be: %+v", s)
	}
	for _, p := range s.Packages {
		checkDownload(t, r, p.Identifier, p.FileSHA256)
	}
	value.(map[string]any)["packages"].([]any)[0].(map[string]any)["fileSha256"] = "none"
	if schema.Validate(value) == nil {
		t.Error("the schema accepts a checksum that is none")
	}
}

func registrySchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", registryModule)
	cmd.Dir = t.TempDir()
	var module struct{ Dir, Error string }
	out, err := cmd.Output()
	if json.Unmarshal(out, &module) != nil || err != nil {
		skip(t, registryModule+" is missing: go mod download "+registryModule+": "+module.Error)
	}
	var schema jsonschema.Schema
	data := must(os.ReadFile(filepath.Join(module.Dir, "docs/reference/server-json/draft/server.schema.json")))
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	return must(schema.Resolve(nil))
}

// checkDownload fails unless the URL is a file of the release and the checksum matches.
func checkDownload(t *testing.T, r *release, url, sum string) {
	t.Helper()
	name, ok := strings.CutPrefix(url, "https://releases.example.org/x/")
	if want, err := r.checksum(name); err != nil || !ok || want != sum {
		t.Errorf("a manifest names %s with the checksum %s: %v, want %s", url, sum, err, want)
	}
}

// scoopManifest checks the manifest against the fields of
// https://github.com/ScoopInstaller/Scoop/blob/master/schema.json that it uses.
func scoopManifest(t *testing.T, r *release) {
	t.Helper()
	var m struct {
		Version, Description, Homepage, License string
		Notes, Bin                              []string
		Architecture                            map[string]struct {
			URL, Hash  string
			ExtractDir string `json:"extract_dir"`
		}
	}
	readJSON(t, filepath.Join(r.out, "service-toolkit.json"), &m)
	if m.Version != r.version || m.License == "" || len(m.Architecture) != 2 || len(m.Bin) != 2 {
		t.Errorf("the manifest is not as it should be: %+v", m)
	}
	for _, arch := range []string{"64bit", "arm64"} {
		a := m.Architecture[arch]
		checkDownload(t, r, a.URL, a.Hash)
		if !strings.HasSuffix(a.URL, "/"+a.ExtractDir+".zip") {
			t.Errorf("%s extracts %q of %s", arch, a.ExtractDir, a.URL)
		}
	}
}

// wingetManifests checks the three manifests against the fields that they use of version 1.12.0 of the schemas in
// https://github.com/microsoft/winget-cli/tree/master/schemas.
func wingetManifests(t *testing.T, r *release) {
	t.Helper()
	read := func(suffix string, value any) {
		data := must(os.ReadFile(filepath.Join(r.out, "ServiceDev.ServiceToolkit"+suffix+".yaml")))
		decoder := yaml.NewDecoder(bytes.NewReader(data))
		decoder.KnownFields(true)
		if err := decoder.Decode(value); err != nil {
			t.Fatalf("%s: %v", suffix, err)
		}
	}
	var version struct {
		wingetHead    `yaml:",inline"`
		DefaultLocale string `yaml:"DefaultLocale"`
	}
	var locale struct {
		wingetHead       `yaml:",inline"`
		PackageLocale    string   `yaml:"PackageLocale"`
		Publisher        string   `yaml:"Publisher"`
		PublisherURL     string   `yaml:"PublisherUrl"`
		PackageName      string   `yaml:"PackageName"`
		PackageURL       string   `yaml:"PackageUrl"`
		License          string   `yaml:"License"`
		ShortDescription string   `yaml:"ShortDescription"`
		Tags             []string `yaml:"Tags"`
	}
	var installer wingetInstaller
	read("", &version)
	read(".locale.en-US", &locale)
	read(".installer", &installer)
	version.check(t, r, "version")
	locale.check(t, r, "defaultLocale")
	installer.check(t, r, "installer")
	if version.DefaultLocale != locale.PackageLocale || len(locale.ShortDescription) > 256 ||
		locale.License == "" || locale.PackageName == "" {
		t.Errorf("the locale is not as it should be: %+v", locale)
	}
	if installer.InstallerType != "zip" || installer.NestedInstallerType != "portable" ||
		!installer.ArchiveBinariesDependOnPath || len(installer.Installers) != 2 {
		t.Errorf("the installer is not as it should be: %+v", installer)
	}
	for _, one := range installer.Installers {
		checkDownload(t, r, one.URL, one.SHA256)
		for _, f := range one.Files {
			folder := strings.TrimSuffix(filepath.Base(one.URL), ".zip")
			if f.Path != folder+`\bin\`+f.Alias+".exe" {
				t.Errorf("%s has the program %s as %s", one.URL, f.Path, f.Alias)
			}
		}
	}
}

// wingetHead holds the fields that every winget manifest has.
type wingetHead struct {
	ID      string `yaml:"PackageIdentifier"`
	Version string `yaml:"PackageVersion"`
	Type    string `yaml:"ManifestType"`
	Schema  string `yaml:"ManifestVersion"`
}

func (h wingetHead) check(t *testing.T, r *release, kind string) {
	t.Helper()
	if h.ID != "ServiceDev.ServiceToolkit" || h.Version != r.version || h.Type != kind || h.Schema != "1.12.0" {
		t.Errorf("the manifest %s begins with %+v", kind, h)
	}
}

type wingetInstaller struct {
	wingetHead                  `yaml:",inline"`
	InstallerType               string   `yaml:"InstallerType"`
	NestedInstallerType         string   `yaml:"NestedInstallerType"`
	ArchiveBinariesDependOnPath bool     `yaml:"ArchiveBinariesDependOnPath"`
	Commands                    []string `yaml:"Commands"`
	Installers                  []struct {
		Architecture string `yaml:"Architecture"`
		URL          string `yaml:"InstallerUrl"`
		SHA256       string `yaml:"InstallerSha256"`
		Files        []struct {
			Path  string `yaml:"RelativeFilePath"`
			Alias string `yaml:"PortableCommandAlias"`
		} `yaml:"NestedInstallerFiles"`
	} `yaml:"Installers"`
}

// formulaHarness evaluates a formula as Homebrew would, and prints its declarations and commands, one per line.
const formulaHarness = `
class Path < String
  def /(name) = Path.new("#{self}/#{name}")
  def install_symlink(path) = puts("link #{path}")
end
class Formula
  class << self
    %w[desc homepage url sha256 license].each { |w| define_method(w) { |v| puts "#{w} #{v}" } }
    def depends_on(what) = puts("depends_on #{what.inspect}")
    def test; end
  end
  def version = "1.4.0-rc.1"
  def libexec = Path.new("LIBEXEC")
  def bin = Path.new("BIN")
  def system(*words) = puts("system #{words.join(' ')}")
  def rm(path) = puts("rm #{path}")
  def generate_completions_from_executable(*) = puts("completions")
end
load ARGV[0]
ServiceToolkit.new.install
abort "no caveats" unless ServiceToolkit.new.caveats.include?("servicectl agent add --all")
`

// formulaBuilds evaluates the formula with Ruby, and checks what it would run in the source archive.
func formulaBuilds(t *testing.T, r *release) {
	t.Helper()
	require(t, map[string]string{"ruby": "ruby", "make": "make"})
	formula := filepath.Join(r.out, "service-toolkit.rb")
	output(t, "ruby", "-c", formula)
	harness := filepath.Join(t.TempDir(), "harness.rb")
	if err := writeFile(harness, formulaHarness); err != nil {
		t.Fatal(err)
	}
	out := output(t, "ruby", harness, formula)
	says := func(pattern string) string {
		match := regexp.MustCompile(`(?m)^` + pattern + `$`).FindStringSubmatch(out)
		if match == nil {
			t.Fatalf("the formula does not say %q:\n%s", pattern, out)
		}
		return match[len(match)-1]
	}
	checkDownload(t, r, says("url (.+)"), says("sha256 (.+)"))
	for _, line := range []string{
		"link LIBEXEC/servicectl", "link LIBEXEC/service-mcp", "rm LIBEXEC/desk-go", "rm LIBEXEC/hello-glasses",
		"rm LIBEXEC/service-backend",
	} {
		says(line)
	}
	source := t.TempDir()
	output(t, "tar", "-xzf", filepath.Join(r.out, sourceName(r)), "-C", source)
	args := strings.Fields(says("system make (.+)"))
	would := output(t, "make", append([]string{"-n", "-C", filepath.Join(source, "service-"+r.version)}, args...)...)
	for _, part := range []string{
		"buildinfo.Version=" + r.version, "buildinfo.Commit=" + r.commit, `-o "LIBEXEC/"`, "ln -sf serviced",
		"plugins.sha256",
	} {
		if !strings.Contains(would, part) {
			t.Errorf("make would not use %s:\n%s", part, would)
		}
	}
}
