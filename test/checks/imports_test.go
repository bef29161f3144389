package checks

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/service-dev/service/"

type pkg struct {
	ImportPath   string
	Dir          string
	Doc          string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for dec.More() {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 20 {
		t.Fatalf("go list found only %d packages, want at least 20", len(all))
	}
	return all
}

// ours returns the imports that belong to this module, as paths relative to it.
func ours(imports []string) []string {
	var rel []string
	for _, path := range imports {
		if r, ok := strings.CutPrefix(path, module); ok {
			rel = append(rel, r)
		}
	}
	return rel
}

func component(rel string) string { return strings.SplitN(rel, "/", 2)[0] }

// ranks orders the components: a component may import those of a lower rank.
var ranks = map[string]int{"daemon": 4, "backend": 4, "plugins": 4, "ctl": 4, "docs": 3, "proto": 2, "glasses": 1,
	"internal": 0}

// Imports between components point to lower ranks. Only their tests import test, and none of them imports packaging.
func TestImports_ComponentsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		rank, isRanked := ranks[component(from)]
		if !isRanked {
			continue
		}
		for _, to := range ours(slices.Concat(p.Imports, p.TestImports, p.XTestImports)) {
			onlyInTests := !slices.Contains(ours(p.Imports), to)
			below, known := ranks[component(to)]
			switch {
			case to == "backend/internal/dbtest" && !onlyInTests:
				t.Errorf("%s imports %s, which only tests may", from, to)
			case component(to) == component(from), known && below < rank:
			case from == "plugins/backendlocal" && to == "backend/server":
			case from == "daemon/serviced" && component(to) == "plugins": // it contains the shipped adapters
			case component(to) == "test" && (onlyInTests || from == "backend/internal/dbtest"):
			default:
				t.Errorf("%s imports %s, which its component may not", from, to)
			}
		}
	}
}

// Helpers under internal are used in at least two places: by two components, or by a component and another helper.
func TestImports_InternalIsShared(t *testing.T) {
	users := map[string]map[string]bool{}
	all := packages(t)
	for _, p := range all {
		if rel := strings.TrimPrefix(p.ImportPath, module); component(rel) == "internal" {
			users[rel] = map[string]bool{}
		}
	}
	for _, p := range all {
		user := strings.TrimPrefix(p.ImportPath, module)
		if component(user) != "internal" {
			user = component(user)
		}
		for _, to := range ours(p.Imports) {
			if component(to) == "internal" && !strings.HasPrefix(user, to) {
				users[to][user] = true
			}
		}
	}
	for helper, by := range users {
		if len(by) < 2 {
			t.Errorf("%s is used only by %v: move it there", helper, slices.Collect(maps.Keys(by)))
		}
	}
}

// The emulated glasses are used to check the drivers, so they share no code with them: the peripherals import no
// other package of this repository. Only tests import them.
func TestImports_EmulatedGlassesAreIndependent(t *testing.T) {
	under := func(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }
	const emulated, driver = "test/glassestest", "glasses/driver"
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		for _, to := range ours(slices.Concat(p.Imports, p.TestImports, p.XTestImports)) {
			if under(from, emulated) && under(to, driver) {
				t.Errorf("%s imports %s: emulated glasses must be independent of what they test", from, to)
			}
		}
		for _, to := range ours(p.Imports) {
			if under(from, emulated+"/peripheral") && !under(to, emulated+"/peripheral") {
				t.Errorf("%s imports %s, which drivers may use too", from, to)
			}
			if under(to, emulated) && component(from) != "test" {
				t.Errorf("%s imports %s, which only tests may", from, to)
			}
		}
	}
}

// Only packages at the edges use the generated contracts.
func TestImports_OnlyEdgesUseContracts(t *testing.T) {
	edges := map[string][]string{
		"proto/plugin/v1": {"daemon/internal/pluginhost", "plugins/"},
	}
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		for _, to := range ours(p.Imports) {
			allowed, guarded := edges[to]
			if !guarded || strings.HasPrefix(from, "test/") {
				continue
			}
			if !slices.ContainsFunc(allowed, func(a string) bool {
				return from == a || strings.HasSuffix(a, "/") && strings.HasPrefix(from, a)
			}) {
				t.Errorf("%s imports the generated package %s, which only edge packages may", from, to)
			}
		}
	}
}

// Inside a component, a package may import only packages of lower layers.
func TestImports_PointDown(t *testing.T) {
	layers := map[string][][]string{
		"daemon/internal/": {
			{"caller", "backend", "descriptors", "limits", "ratelog"},
			{"statefile", "clientio"},
			{"config", "account", "identity", "consent", "codes", "fontstore", "pairs", "profiles"},
			{"telemetry"},
			{"session", "link", "scaffold"},
			{"scenario"},
			{"tools"},
			{"osservice", "control", "mcpgate", "pluginhost", "appserver"},
			{"app"},
		},
		"backend/internal/": {
			{"config", "secret", "limit", "periodic", "osservice", "httpjson", "yamlfile", "db"},
			{"audit", "analytics", "telemetry", "mail", "chart", "oidc", "dbtest"},
			{"link", "credit"},
			{"account", "projects"},
			{"grants", "credentials", "connpage", "passkey", "sessions"},
			{"assistant", "attest", "memory"},
			{"gateway"},
			{"usage"},
			{"api", "modelapi", "web", "relay"},
			{"app", "storetest"},
		},
	}
	all := packages(t)
	for prefix, order := range layers {
		level := map[string]int{}
		for i, names := range order {
			for _, name := range names {
				level[name] = i
			}
		}
		for _, p := range all {
			from, ok := strings.CutPrefix(strings.TrimPrefix(p.ImportPath, module), prefix)
			if !ok {
				continue
			}
			at, known := level[component(from)]
			if !known {
				t.Errorf("%s%s has no layer: add it to this test", prefix, from)
				continue
			}
			for _, to := range ours(p.Imports) {
				name, ok := strings.CutPrefix(to, prefix)
				if ok && component(name) != component(from) && level[component(name)] >= at {
					t.Errorf("%s imports %s, which is not in a lower layer", prefix+from, to)
				}
			}
		}
	}
}

// The daemon opens no file named by a client: only the client's own process does file operations.
func TestImports_OnlyClientsTouchFiles(t *testing.T) {
	// The last one is allowed because, in a sandbox, the daemon and the client are one process.
	allowed := []string{"ctl/internal/clientio", "daemon/internal/app"}
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		if slices.Contains(ours(p.Imports), "internal/clientio/local") && !slices.Contains(allowed, from) {
			t.Errorf("%s imports internal/clientio/local, which only client processes may", from)
		}
	}
}

// Every agent starts a service-mcp process, so its imports determine start-up time and memory.
func TestImports_ServiceMCPStaysLean(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module+"ctl/service-mcp").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	for _, heavy := range []string{"google.golang.org/grpc", "github.com/spf13/cobra", "encoding/json",
		"github.com/modelcontextprotocol/go-sdk/mcp", "log/slog", "net/http"} {
		if slices.Contains(deps, heavy) {
			t.Errorf("service-mcp depends on %s, which costs start-up time and memory", heavy)
		}
	}
}

// Every command starts a servicectl process.
func TestImports_ServicectlLinksNoGRPC(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module+"ctl/servicectl").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(dep, "google.golang.org/grpc") || strings.HasPrefix(dep, "google.golang.org/protobuf") {
			t.Errorf("servicectl depends on %s, which costs start-up time and size", dep)
		}
	}
}

func TestPackages_HaveDocComment(t *testing.T) {
	for _, p := range packages(t) {
		rel := strings.TrimPrefix(p.ImportPath, module)
		if p.Doc != "" || onlyTests(p.Dir) && testDoc(t, p.Dir) {
			continue
		}
		t.Errorf("%s has no doc comment", rel)
	}
}

func onlyTests(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	return !slices.ContainsFunc(files, func(f string) bool { return !strings.HasSuffix(f, "_test.go") })
}

func testDoc(t *testing.T, dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if f.Doc != nil {
			return true
		}
	}
	return false
}

// Tracked files contain no paths of the machine that they were written on, and lock files contain no addresses of
// package registries.
func TestFiles_HoldNoLocalPath(t *testing.T) {
	root := filepath.Join("..", "..")
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	// The patterns are split so that they do not match this file.
	machine := regexp.MustCompile(`(?m)(^|[^A-Za-z0-9_.-])/(wo` + `rk|ro` + `ot|ho` + `me/[a-z]+/(go|src))/`)
	resolved := regexp.MustCompile(`"resolved": *"http`)
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || slices.Contains(data[:min(len(data), 8000)], 0) {
			continue // deleted in the work tree, or binary
		}
		if loc := machine.Find(data); loc != nil {
			t.Errorf("%s contains a path of a developer's machine: %q", name, loc)
		}
		if strings.HasSuffix(name, "package-lock.json") && resolved.Match(data) {
			t.Errorf("%s contains the address of a package registry", name)
		}
	}
}

// Files matched by .gitignore are written by tools and may contain paths of the machine, so none may be tracked.
func TestFiles_IgnoredAreUntracked(t *testing.T) {
	cmd := exec.Command("git", "ls-files", "--cached", "--ignored", "--exclude-standard")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for file := range strings.Lines(string(out)) {
		t.Errorf("%s is tracked although .gitignore matches it", strings.TrimSpace(file))
	}
}
