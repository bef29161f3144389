// Package recipes applies the recipes of CONTRIBUTING.md to copies of the tree. Each .txtar file is the smallest
// example of one: the heading of the recipe, the commands that must succeed, and what changes in which file. A section
// whose file exists has an anchor in its first line, "@after TEXT"; the rest is inserted after the first line that
// contains TEXT. Any other section is a new file.
package recipes

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

const root = "../.."

func TestRecipes(t *testing.T) {
	files, err := filepath.Glob("*.txtar")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d recipes (error %v), want at least 5", len(files), err)
	}
	contributing, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".txtar"), func(t *testing.T) {
			recipe, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			heading, commands, _ := strings.Cut(strings.TrimSpace(string(recipe.Comment)), "\n")
			_, text, found := strings.Cut(string(contributing), "\n"+heading+"\n")
			if !found {
				t.Fatalf("CONTRIBUTING.md has no heading %q", heading)
			}
			text, _, _ = strings.Cut(text, "\n#")
			dir := t.TempDir()
			copyTree(t, dir)
			copied := time.Now()
			changed := apply(t, dir, recipe.Files)
			for command := range strings.Lines(commands) {
				run(t, dir, strings.TrimSpace(command))
			}
			checkPlaces(t, text, append(changed, writtenSince(t, dir, copied)...))
		})
	}
}

var numbered = regexp.MustCompile(`(?m)^\d+\. `)

// checkPlaces checks that each numbered place of a recipe's text names a file that the example changes, and that
// together they name all of them.
func checkPlaces(t *testing.T, text string, changed []string) {
	t.Helper()
	places := numbered.Split(text, -1)[1:]
	for _, file := range changed {
		if !slices.ContainsFunc(places, func(place string) bool { return names(place, file) }) {
			t.Errorf("the example changes %s, which CONTRIBUTING.md does not name", file)
		}
	}
	for _, place := range places {
		if !slices.ContainsFunc(changed, func(file string) bool { return names(place, file) }) {
			t.Errorf("CONTRIBUTING.md names a place that the example does not change: %s", place)
		}
	}
}

// names reports whether a text names a file. A word in angle brackets matches any part of a name.
func names(text, file string) bool {
	for i, span := range strings.Split(text, "`") {
		pattern := placeholder.ReplaceAllLiteralString(span, "*")
		if ok, err := path.Match(pattern, file); ok && err == nil && i%2 == 1 {
			return true
		}
	}
	return false
}

var placeholder = regexp.MustCompile("<[a-z]+>")

// copyTree copies the files of the tree that git does not ignore.
func copyTree(t *testing.T, dir string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("list the files: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted in the work tree
		}
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), data)
	}
}

// apply writes the sections of a recipe and returns the names of their files.
func apply(t *testing.T, dir string, sections []txtar.File) (changed []string) {
	t.Helper()
	for _, s := range sections {
		file := filepath.Join(dir, s.Name)
		text := string(s.Data)
		if old, err := os.ReadFile(file); err == nil {
			first, rest, _ := strings.Cut(text, "\n")
			anchor, ok := strings.CutPrefix(first, "@after ")
			before, after, found := strings.Cut(string(old), anchor)
			if !ok || !found {
				t.Fatalf("%s exists and does not contain the anchor %q", s.Name, first)
			}
			line, after, _ := strings.Cut(after, "\n")
			text = before + anchor + line + "\n" + rest + after
		}
		write(t, file, []byte(text))
		changed = append(changed, s.Name)
	}
	return changed
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs a command in the copy. With -trimpath, builds do not depend on where the copy is, so that they are cached.
func run(t *testing.T, dir, command string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	t.Logf("%s: %.1f s, %.1f s of processors", command, time.Since(began).Seconds(),
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	if strings.Contains(string(out), "no tests to run") {
		t.Errorf("%s ran no test", command)
	}
}

// writtenSince returns the files in dir that were written after a time.
func writtenSince(t *testing.T, dir string, since time.Time) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("look at %s: %w", file, err)
		}
		if info.ModTime().After(since) {
			name, err := filepath.Rel(dir, file)
			list = append(list, filepath.ToSlash(name))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}
