package scaffold

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/glasses/guide"
	"github.com/service-dev/service/internal/clientio/local"
	"github.com/service-dev/service/internal/problem"
)

const testKey = "spk_abcdefghijklmnopqrstuvwxyz0123456789"

// minter counts the keys that it created.
type minter struct {
	projects []string
	err      error
}

func (m *minter) mint(_ context.Context, project string) (string, error) {
	if m.err != nil {
		return "", m.err
	}
	m.projects = append(m.projects, project)
	return testKey, nil
}

// ours opens files with the permissions of this process.
var ours = clientio.FilesOf(caller.Caller{IO: local.New()})

func order(root string) Order {
	return Order{Files: ours, Root: root, Project: "com.example.app",
		Request: Request{Language: Python, Capabilities: []string{guide.Display}}}
}

func codeOf(err error) string {
	var e *problem.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestWriteTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	root, keys := t.TempDir(), &minter{}
	first, err := Write(context.Background(), order(root), keys.mint)
	if err != nil {
		t.Fatal(err)
	}
	if !first.KeyMinted || first.Project != "com.example.app" || len(first.Files) != 5 {
		t.Errorf("%+v", first)
	}
	for _, f := range first.Files {
		if f.State != "created" {
			t.Errorf("%+v", f)
		}
		data, err := os.ReadFile(filepath.Join(root, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), testKey) != (filepath.Base(f.Path) == KeyName) {
			t.Errorf("%s: want the key in the key file and in no other", f.Path)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "service", KeyName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file has %v (error %v), want 0600", info.Mode(), err)
	}
	again := order(root)
	again.Project = "" // service.json now contains it
	second, err := Write(context.Background(), again, keys.mint)
	if err != nil || second.KeyMinted || len(keys.projects) != 1 || second.Project != "com.example.app" {
		t.Errorf("second order: %+v %v, %d keys; want the same project and key", second, err, len(keys.projects))
	}
	for _, f := range second.Files {
		if f.State != "unchanged" {
			t.Errorf("%+v", f)
		}
	}
	left, err := filepath.Glob(filepath.Join(root, "service", "*.tmp"))
	if err != nil || left != nil {
		t.Errorf("%v %v", left, err)
	}
}

func TestWriteKeepsWhatIsThePersons(t *testing.T) {
	t.Parallel()
	root, keys := t.TempDir(), &minter{}
	write(t, filepath.Join(root, "service", ".gitignore"), []byte("*.log"))
	if _, err := Write(context.Background(), order(root), keys.mint); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(filepath.Join(root, "service", ".gitignore")); string(data) != "*.log\n"+KeyName+"\n" {
		t.Errorf(".gitignore is %q, want the old line and the key", data)
	}
	module := filepath.Join(root, "service", "glasses.py")
	before, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	write(t, module, append(before, "# mine\n"...))
	more := order(root)
	more.Capabilities = []string{guide.Display, guide.Camera}
	if _, err := Write(context.Background(), more, keys.mint); codeOf(err) != problem.CodeGeneratedFileChanged ||
		!strings.Contains(err.Error(), "service/glasses.py") {
		t.Errorf("Write over a changed file: %v, want an error that names the file", err)
	}
	if data, _ := os.ReadFile(module); !strings.HasSuffix(string(data), "# mine\n") {
		t.Error("the manual change was overwritten")
	}
	more.Force = true
	w, err := Write(context.Background(), more, keys.mint)
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(module); strings.Contains(string(data), "# mine") ||
		!strings.Contains(string(data), "camera.photo") {
		t.Error("force did not overwrite the change")
	}
	if w.KeyMinted {
		t.Error("a second key was created")
	}

	// A key belongs to one project.
	write(t, filepath.Join(root, "service.json"), []byte(`{"project":"com.example.renamed"}`))
	renamed := more
	renamed.Project = ""
	if w, err := Write(context.Background(), renamed, keys.mint); err != nil || !w.KeyMinted ||
		keys.projects[len(keys.projects)-1] != "com.example.renamed" {
		t.Errorf("after renaming the project: %+v %v, keys of %v; want a new key", w, err, keys.projects)
	}
	write(t, filepath.Join(root, "service.json"), []byte(`{"project":"com.example.app"}`))

	// A module of another language is added to the same folder. The files of the first one are still known.
	other := order(root)
	other.Language = TypeScript
	if _, err := Write(context.Background(), other, keys.mint); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "service", ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	if m, err := parseManifest(data); err != nil || len(m.Modules) != 2 || m.sum("glasses.py") == "" ||
		m.sum("glasses.ts") == "" {
		t.Errorf("%+v %v", m, err)
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	for _, test := range []struct {
		name, code string
		prepare    func(t *testing.T, root string, o *Order)
	}{
		{"a folder above", problem.CodeInvalidRequest, func(_ *testing.T, _ string, o *Order) { o.Dir = "../elsewhere" }},
		{"a folder elsewhere", problem.CodeInvalidRequest, func(_ *testing.T, _ string, o *Order) { o.Dir = outside }},
		{"the project itself", problem.CodeInvalidRequest, func(_ *testing.T, _ string, o *Order) { o.Dir = "." }},
		{"no working directory", problem.CodeFolderUnusable, func(_ *testing.T, _ string, o *Order) { o.Root = "" }},
		{"a link that leads out", problem.CodeFolderUnusable, func(t *testing.T, root string, _ *Order) {
			if err := os.Symlink(outside, filepath.Join(root, "service")); err != nil {
				t.Skip(err)
			}
		}},
		{"a link at the key's path", problem.CodeFolderUnusable, func(t *testing.T, root string, _ *Order) {
			write(t, filepath.Join(root, "service", "x"), nil)
			if err := os.Symlink(filepath.Join(outside, "key"), filepath.Join(root, "service", KeyName)); err != nil {
				t.Skip(err)
			}
		}},
		{"a person's file at the module's path", problem.CodeGeneratedFileChanged, func(t *testing.T, root string, _ *Order) {
			write(t, filepath.Join(root, "service", "glasses.py"), []byte("mine"))
		}},
		{"a broken manifest", problem.CodeFolderUnusable, func(t *testing.T, root string, _ *Order) {
			write(t, filepath.Join(root, "service", ManifestName),
				[]byte(`{"manifest":1,"modules":[{"files":[{"name":"../../x"}]}]}`))
		}},
		{"no app id", problem.CodeInvalidRequest, func(_ *testing.T, _ string, o *Order) { o.Project = "My App" }},
		{"another project", problem.CodeInvalidRequest, func(t *testing.T, root string, _ *Order) {
			write(t, filepath.Join(root, ProjectFile), []byte(`{"project":"com.example.other"}`))
		}},
		{"a broken service.json", problem.CodeFolderUnusable, func(t *testing.T, root string,
			_ *Order) {
			write(t, filepath.Join(root, ProjectFile), []byte(`{`))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			root, keys := t.TempDir(), &minter{}
			o := order(root)
			test.prepare(t, root, &o)
			if _, err := Write(context.Background(), o, keys.mint); codeOf(err) != test.code {
				t.Errorf("%v, want %s", err, test.code)
			}
			if len(keys.projects) != 0 {
				t.Error("a key was created unnecessarily")
			}
		})
	}
	left, err := os.ReadDir(outside)
	if err != nil || len(left) != 0 {
		t.Errorf("files were written outside: %v %v", left, err)
	}
}

func TestWriteWithoutKeyWritesNothing(t *testing.T) {
	t.Parallel()
	root, refused := t.TempDir(), errors.New("link an account first")
	if _, err := Write(context.Background(), order(root), (&minter{err: refused}).mint); !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	left, err := os.ReadDir(root)
	if err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
}
