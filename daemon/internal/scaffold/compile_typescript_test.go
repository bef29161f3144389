package scaffold

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses/guide"
	"github.com/service-dev/service/test/runtimes"
)

// angularOptions are the options of a new Angular workspace.
const angularOptions = `{"compilerOptions": {"strict": true, "noImplicitOverride": true,
	"noPropertyAccessFromIndexSignature": true, "noImplicitReturns": true, "noFallthroughCasesInSwitch": true,
	"skipLibCheck": true, "isolatedModules": true, "experimentalDecorators": true, "target": "ES2022",
	"module": "preserve", "noEmit": true}}`

// checkedOptions are stricter than the defaults of common tools.
const checkedOptions = `{"compilerOptions": {"strict": true, "noEmit": true, "skipLibCheck": true,
	"noUnusedLocals": true, "noUnusedParameters": true, "erasableSyntaxOnly": true,
	"verbatimModuleSyntax": true, "isolatedModules": true,
	"target": "ES2022", "module": "ES2022", "moduleResolution": "bundler", "lib": ["ES2023", "DOM", "DOM.Iterable"],
	"types": []}}`

// Generated code compiles with the options that `tsc --init` writes and with Angular's, by the current TypeScript and
// its predecessors. The predecessors are ten times slower, so unless SERVICE_TEST_FULL is set they compile fewer
// modules, and without checkedOptions.
func TestTypeScriptCompiles(t *testing.T) {
	t.Parallel()
	node := tool(t, "node")
	if node == "" {
		t.Skip("SKIPPED: node is not installed (make npm)")
	}
	compilers := runtimes.TypeScript(t)
	for i, tsc := range compilers {
		sets := capabilitySets()
		projects := map[string]string{"init": "", "angular": angularOptions, "checked": checkedOptions}
		if i < len(compilers)-1 && os.Getenv("SERVICE_TEST_FULL") == "" {
			sets = someSets()
			delete(projects, "checked")
		}
		sources := typeScriptProjects(t, sets)
		for name, options := range projects {
			t.Run(tsc.Version+"/"+name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(sources)); err != nil {
					t.Fatal(err)
				}
				if options == "" {
					mustRun(t, dir, node, tsc.Path, "--init")
				} else {
					write(t, filepath.Join(dir, "tsconfig.json"), []byte(options))
				}
				mustRun(t, dir, node, tsc.Path)
			})
		}
	}
}

// typeScriptProjects returns a folder with modules for sets of capabilities, and with every example and its module.
func typeScriptProjects(t *testing.T, sets map[string][]string) string {
	t.Helper()
	dir, _ := generateInto(t, TypeScript, sets)
	for _, topic := range ExampleTopicIDs() {
		exampleProject(t, filepath.Join(dir, "example-"+topic), TypeScript, topic)
	}
	write(t, filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`))
	return dir
}

// If an example is compiled next to its source, as by `tsc --init && tsc`, it still runs, and the module counts as
// intact.
func TestTypeScript_CompiledInPlace(t *testing.T) {
	t.Parallel()
	tsc, node := tool(t, "tsc"), tool(t, "node")
	if tsc == "" || node == "" {
		t.Skip("SKIPPED: tsc and node are not installed (make npm)")
	}
	dir := t.TempDir()
	o := order(dir)
	o.Language = TypeScript
	o.Capabilities = []string{guide.Display, guide.Input}
	if _, err := Write(context.Background(), o, (&minter{}).mint); err != nil {
		t.Fatal(err)
	}
	e, err := ExampleOf(TypeScript, "hello")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, e.Name), []byte(e.Code))
	write(t, filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`))
	run := func(script string) {
		t.Helper()
		cmd := exec.Command(node, script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "SERVICE_GLASSES_URL=")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "not_configured") {
			t.Errorf("%s without a session: got %v, want the error not_configured: %s", script, err, out)
		}
	}
	run("hello.ts")
	mustRun(t, dir, node, tsc, "--init")
	mustRun(t, dir, node, tsc)
	mustRun(t, dir, node, tsc, "--outDir", "lib", "--removeComments")
	if _, err := os.Stat(filepath.Join(dir, "service", "glasses.d.ts")); err != nil {
		t.Fatal(err)
	}
	run("hello.js")
	in, err := Inspect(context.Background(), ours, dir)
	if err != nil {
		t.Fatal(err)
	}
	if verdict, findings := Validate(in); verdict != VerdictReady || len(codes(findings)) > 0 {
		t.Errorf("a compiled project: got %s, want ready: %+v", verdict, findings)
	}
	again, err := Write(context.Background(), o, (&minter{}).mint)
	if err != nil {
		t.Errorf("generate beside compiled files: %v", err)
	}
	t.Logf("%+v", again.Files)
}
