// Package runtimes finds the versions of Node, TypeScript and Python that generated modules are tested with.
package runtimes

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Runtime is one version of a program.
type Runtime struct {
	Version string // without the patch level
	Path    string
}

// Node returns the supported versions of Node that `make npm` installs, the oldest first. In CI the test fails if one
// is missing.
func Node(t testing.TB) []Runtime {
	t.Helper()
	return installed(t, []Runtime{
		{"20", "node20/node_modules/.bin/node"}, {"22", "node_modules/.bin/node"}, {"24", "node24/node_modules/.bin/node"},
	})
}

// TypeScript returns the compilers that `make npm` installs, the oldest first. They are JavaScript programs.
func TypeScript(t testing.TB) []Runtime {
	t.Helper()
	return installed(t, []Runtime{
		{"5", "node_modules/typescript/bin/tsc"}, {"6", "typescript/node_modules/typescript-6/bin/tsc"},
		{"7", "typescript/node_modules/typescript-7/bin/tsc"},
	})
}

func installed(t testing.TB, all []Runtime) []Runtime {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	var found []Runtime
	for _, r := range all {
		r.Path = filepath.Join(filepath.Dir(here), "..", "e2e", "npm", r.Path)
		if _, err := os.Stat(r.Path); err != nil {
			absent(t, r.Path)
			continue
		}
		found = append(found, r)
	}
	return found
}

func absent(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is missing; CI must install it", what)
	}
	t.Logf("SKIPPED in part: %s is not installed", what)
}

// oldestPython is the oldest version that generated modules support: 3.9.
const oldestPython = 309

// Python returns the oldest and the newest supported Python of this machine: one or two versions, on PATH, installed
// by pyenv or unpacked by python.sh. In CI the test fails if one is missing.
func Python(t testing.TB) []Runtime {
	t.Helper()
	found := pythons()
	versions := slices.Sorted(maps.Keys(found))
	if len(versions) < 2 {
		absent(t, "a second version of Python (test/runtimes/python.sh)")
	}
	if len(versions) == 0 {
		return nil
	}
	var all []Runtime
	for _, version := range slices.Compact([]int{versions[0], versions[len(versions)-1]}) {
		all = append(all, Runtime{fmt.Sprintf("3.%d", version%100), found[version]})
	}
	return all
}

// pythons maps versions, such as 309 for 3.9, to programs.
var pythons = sync.OnceValue(func() map[int]string {
	places := filepath.SplitList(os.Getenv("PATH"))
	_, here, _, _ := runtime.Caller(0)
	unpacked, _ := filepath.Glob(filepath.Join(filepath.Dir(here), "python", "*", "usr", "bin"))
	places = append(places, unpacked...)
	if home, err := os.UserHomeDir(); err == nil {
		pyenv, _ := filepath.Glob(filepath.Join(home, ".pyenv", "versions", "*", "bin"))
		places = append(places, pyenv...)
	}
	found := map[int]string{}
	for _, place := range places {
		programs, _ := filepath.Glob(filepath.Join(place, "python3*"))
		for _, program := range programs {
			if strings.Trim(filepath.Base(program), "python.0123456789") != "" {
				continue // e.g. python3-config
			}
			// pyenv's shims depend on the environment, so use the program that a shim runs.
			out, err := exec.Command(program, "-S", "-c",
				"import ssl, sys; print(sys.version_info[0] * 100 + sys.version_info[1], sys.executable)").Output()
			var version int
			var path string
			if _, scanErr := fmt.Sscan(string(out), &version, &path); err == nil && scanErr == nil && version >= oldestPython {
				found[version] = path
			}
		}
	}
	return found
})
