package scaffold

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestGitIgnore_AgreesWithGit(t *testing.T) {
	t.Parallel()
	git := tool(t, "git")
	if git == "" {
		t.Skip("SKIPPED: git is not installed")
	}
	ignores := map[string]string{
		".gitignore": "# comment\n\n*.log\n!keep.log\n/build\nout/\ndocs/*.txt\n**/tmp\ndeep/**/x.json\nlogs/**\n!logs/a\n" +
			"[ab].cfg\nq?.md\n/only/\nname\n",
		"sub/.gitignore": "*.txt\n!*.log\n/local\n",
	}
	files := []string{"a.log", "keep.log", "sub/a.log", "sub/keep.log", "build/a", "sub/build/a", "out/a", "sub/out/a", "x/out",
		"docs/a.txt", "docs/b/a.txt", "x/docs/a.txt", "tmp/a", "sub/tmp/a", "x/y/tmp", "deep/x.json", "deep/a/x.json",
		"deep/a/b/x.json", "deep/y.json", "logs/a", "logs/b", "a.cfg", "c.cfg", "sub/b.cfg", "qq.md", "qqq.md", "only/a",
		"sub/only/a", "sub/a.txt", "sub/x/a.txt", "a.txt", "sub/local/a", "sub/x/local/a", "name", "x/name/a", "tracked.log"}
	dir := t.TempDir()
	run := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	run("", "init", "-q")
	var ours gitIgnore
	for _, name := range []string{".gitignore", "sub/.gitignore"} {
		write(t, filepath.Join(dir, name), []byte(ignores[name]))
		ours.add(path.Dir(name), []byte(ignores[name]))
	}
	for _, name := range files {
		write(t, filepath.Join(dir, name), nil)
	}
	run("", "add", "-f", "tracked.log", "sub/x/local/a")
	index, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	ours.index = index
	want := strings.Fields(run(strings.Join(files, "\n"), "check-ignore", "--stdin"))
	for _, name := range files {
		if got := ours.ignores(name, false); got != slices.Contains(want, name) {
			t.Errorf("%s is ignored: %v, git: %v", name, got, !got)
		}
	}
	if !ours.tracks("sub/x", true) || ours.tracks("x", true) || ours.tracks("d.log", false) {
		t.Error("the index is read wrongly")
	}
}

func FuzzGitIgnore(f *testing.F) {
	f.Add([]byte("*.log\n!a/**/b\n/x/\n"), "a/b/c.log")
	f.Fuzz(func(t *testing.T, lines []byte, name string) {
		if !fs.ValidPath(name) {
			return
		}
		var g gitIgnore
		g.add(".", lines)
		g.index = bytes.Clone(lines)
		g.ignores(name, false)
		g.ignores(name, true)
	})
}
