package scaffold

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/service-dev/service/glasses/guide"
	"github.com/service-dev/service/test/runtimes"
)

// variant is a language in which apps run on this machine, with one version of its runtime.
type variant struct {
	name     string
	language string
	command  []string // starts the probe
	compiled bool     // to JavaScript
}

// variants lists the variants that can run on this machine: the oldest and the newest supported runtimes.
func variants(t *testing.T) []variant {
	t.Helper()
	var found []variant
	tsc := tool(t, "tsc")
	for _, node := range runtimes.Node(t) {
		if node.Version == "20" && tsc == "" {
			continue // this runtime does not run TypeScript
		}
		v := variant{"typescript-" + node.Version, TypeScript, []string{node.Path, "probe.ts"}, false}
		if node.Version == "20" {
			v.command, v.compiled = []string{node.Path, "--experimental-websocket", "probe.js"}, true
		}
		found = append(found, v)
	}
	for _, python := range runtimes.Python(t) {
		found = append(found, variant{"python-" + python.Version, Python, []string{python.Path, "probe.py"}, false})
	}
	if java := tool(t, "java"); java != "" && kotlinProbe(t) != "" {
		command := []string{java, "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", kotlinProbe(t), "ProbeKt"}
		found = append(found, variant{Kotlin, Kotlin, command, false})
	}
	return found
}

// newestVariants lists the newest runtime of each language, for tests that do not depend on the version. With
// SERVICE_TEST_FULL it lists all variants.
func newestVariants(t *testing.T) []variant {
	t.Helper()
	all := variants(t)
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		return all
	}
	var newest []variant
	for i, v := range all {
		if i == len(all)-1 || all[i+1].language != v.language {
			newest = append(newest, v)
		}
	}
	return newest
}

// each runs a test for each variant.
func each(t *testing.T, test func(t *testing.T, start func(env ...string) *app)) {
	t.Helper()
	eachOf(t, variants(t), test)
}

func eachOf(t *testing.T, list []variant, test func(t *testing.T, start func(env ...string) *app)) {
	for _, v := range list {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			test(t, func(env ...string) *app { return start(t, v, env...) })
		})
	}
}

// writeProbe writes a module with every capability and the probe into a folder.
func writeProbe(t *testing.T, dir string, v variant) {
	t.Helper()
	files, err := Generate(Request{Language: v.language, Capabilities: guide.CapabilityIDs()})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		write(t, filepath.Join(dir, "service", f.Name), f.Data)
	}
	write(t, filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`))
	script := v.command[len(v.command)-1]
	if v.language == Kotlin {
		return
	}
	if v.compiled {
		script = "probe.ts"
	}
	probe, err := os.ReadFile(filepath.Join("testdata", script))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, script), probe)
	if v.compiled {
		copyCompiled(t, dir)
	}
}

var onceJavaScript sync.Once

// copyCompiled copies the JavaScript of the probe and its module, which are compiled once for all tests, to a folder
// that contains the TypeScript.
func copyCompiled(t *testing.T, dir string) {
	t.Helper()
	shared := filepath.Join(probes, "js")
	onceJavaScript.Do(func() {
		compile := exec.Command(tool(t, "node"), tool(t, "tsc"), "--strict", "--target", "ES2022",
			"--module", "ES2022", "--moduleResolution", "bundler", "--lib", "ES2023,DOM,DOM.Iterable", "--outDir", shared,
			"probe.ts")
		compile.Dir = dir
		if out, err := compile.CombinedOutput(); err != nil {
			t.Errorf("tsc: %v\n%s", err, out)
		}
	})
	for _, name := range []string{"probe.js", "service/glasses.js"} {
		data, err := os.ReadFile(filepath.Join(shared, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), data)
	}
}
