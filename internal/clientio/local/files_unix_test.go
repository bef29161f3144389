//go:build unix

package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/service-dev/service/internal/clientio"
)

func ask(t *testing.T, r clientio.Request) clientio.Response {
	t.Helper()
	answer, _ := New().Do(t.Context(), r)
	return answer
}

func TestWrite_CreatesAndReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "deep", "a.json")
	r := clientio.Request{Op: clientio.Write, Path: clientio.Path(path), Data: []byte("one"), Mode: 0o600,
		DirMode: 0o700}
	if answer := ask(t, r); answer.Code != "" {
		t.Fatal(answer)
	}
	r.Data = []byte("two")
	if answer := ask(t, r); answer.Code != clientio.CodeExists {
		t.Errorf("write without replace: got %+v, want CodeExists", answer)
	}
	r.Replace = true
	isRoot := os.Geteuid() == 0
	if isRoot {
		if err := os.Chown(path, 65534, 65533); err != nil {
			t.Fatal(err)
		}
	}
	if answer := ask(t, r); answer.Code != "" {
		t.Errorf("write with replace: got %+v, want success", answer)
	}
	if data, _ := os.ReadFile(path); string(data) != "two" {
		t.Errorf("the file contains %q, want two", data)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
	if info, err := os.Stat(path); isRoot && (err != nil || info.Sys().(*syscall.Stat_t).Uid != 65534 ||
		info.Sys().(*syscall.Stat_t).Gid != 65533) {
		t.Errorf("got %+v, %v, want the owner of the replaced file", info, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("unexpected files remain: %v", left)
	}
}

func TestWrite_FollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	if answer := ask(t, clientio.Request{Op: clientio.Write, Path: clientio.Path(link), Data: []byte("x"),
		Mode: 0o600, Replace: true}); answer.Code != clientio.CodeNotRegular {
		t.Errorf("write through a symbolic link: got %+v, want CodeNotRegular", answer)
	}
	if data, _ := os.ReadFile(victim); string(data) != "kept" {
		t.Errorf("the target of the symbolic link contains %q, want \"kept\"", data)
	}
}

// A file is removed only if its content is unchanged, and never through a symbolic link.
func TestRemove_ChecksTheContent(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "a.png"), filepath.Join(dir, "link.png")
	if err := errors.Join(os.WriteFile(file, []byte("old"), 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	old, other := sha256.Sum256([]byte("old")), sha256.Sum256([]byte("other"))
	for _, c := range []struct {
		path, code string
		sum        [32]byte
	}{
		{file, clientio.CodeFailed, other}, {link, clientio.CodeNotRegular, old}, {dir, clientio.CodeNotRegular, old},
		{filepath.Join(dir, "nosuch"), clientio.CodeNotExist, old}, {file, "", old}, {file, clientio.CodeNotExist, old},
	} {
		answer := ask(t, clientio.Request{Op: clientio.Remove, Path: clientio.Path(c.path), Data: c.sum[:]})
		if answer.Code != c.code {
			t.Errorf("remove %s: got %+v, want %q", c.path, answer, c.code)
		}
	}
}

func TestRoot_HoldsPathsIn(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	outside := filepath.Join(dir, "secret")
	for path, data := range map[string]string{filepath.Join(root, "in"): "in", outside: "out"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"abs": outside, "up": "../secret", "dir": ".."} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if answer := ask(t, clientio.Request{Op: clientio.Read, Root: clientio.Path(root), Path: "in",
		Limit: 9}); string(answer.Data) != "in" {
		t.Errorf("read in: got %+v", answer)
	}
	for _, path := range []string{"../secret", "abs", "up", "dir/secret", "/etc/passwd", "", "in\x00"} {
		if answer := ask(t, clientio.Request{Op: clientio.Read, Root: clientio.Path(root), Path: clientio.Path(path),
			Limit: 9}); answer.Code == "" || answer.Data != nil {
			t.Errorf("read %q outside the root: got %+v, want an error", path, answer)
		}
		if answer := ask(t, clientio.Request{Op: clientio.Write, Root: clientio.Path(root), Path: clientio.Path(path),
			Data: []byte("x"), Mode: 0o600, DirMode: 0o700, Replace: true}); answer.Code == "" {
			t.Errorf("write %q outside the root: got %+v, want an error", path, answer)
		}
	}
	if data, _ := os.ReadFile(outside); string(data) != "out" {
		t.Errorf("the file outside the root contains %q, want out", data)
	}
}

func TestRead_RefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	fifo, big := filepath.Join(dir, "fifo"), filepath.Join(dir, "big")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(big, bytes.Repeat([]byte("x"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, code string }{
		{fifo, clientio.CodeNotRegular}, {dir, clientio.CodeNotRegular}, {"/dev/zero", clientio.CodeNotRegular},
		{big, clientio.CodeTooLarge}, {filepath.Join(dir, "none"), clientio.CodeNotExist},
		{"relative", clientio.CodeRefused},
	} {
		if answer := ask(t, clientio.Request{Op: clientio.Read, Path: clientio.Path(tt.path),
			Limit: 99}); answer.Code != tt.code {
			t.Errorf("read %s: got %+v, want %s", tt.path, answer, tt.code)
		}
	}
}

func TestFind_LooksUpward(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b", "c")
	// A folder with that name is ignored.
	if err := os.MkdirAll(filepath.Join(deep, "service.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "a", "service.json")
	if err := os.WriteFile(want, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	answer := ask(t, clientio.Request{Op: clientio.Find, Path: clientio.Path(deep), Name: "service.json", Limit: 9})
	if answer.Path != clientio.Path(want) || string(answer.Data) != "{}" {
		t.Errorf("find: got %+v", answer)
	}
	if answer := ask(t, clientio.Request{Op: clientio.Find, Path: clientio.Path(deep), Name: "../x",
		Limit: 9}); answer.Code != clientio.CodeRefused {
		t.Errorf("find a name outside the folder: got %+v, want CodeRefused", answer)
	}
}

// Names on older systems may not be UTF-8; they must reach the file system unchanged.
func TestPath_KeepsEveryByte(t *testing.T) {
	sent := clientio.Request{Op: clientio.Write, Path: clientio.Path(filepath.Join(t.TempDir(), "caf\xe9")),
		Data: []byte("x"), Mode: 0o600}
	line, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var got clientio.Request
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	if answer := ask(t, got); answer.Code != "" {
		t.Fatal(answer)
	}
	if _, err := os.Stat(string(sent.Path)); err != nil {
		t.Error(err)
	}
}

func TestUnknownOperationIsRefused(t *testing.T) {
	if answer := ask(t, clientio.Request{Op: "exec", Path: "/bin/sh"}); answer.Code != clientio.CodeRefused {
		t.Errorf("unknown operation: got %+v, want CodeRefused", answer)
	}
}

func FuzzExecutor(f *testing.F) {
	f.Add([]byte(`{"id":1,"op":"stat","root":"/tmp","path":"../x"}`))
	f.Add([]byte(`{"id":1,"op":"open","url":"file:///x"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var r clientio.Request
		if json.Unmarshal(line, &r) != nil || r.Op == clientio.Write || r.Op == clientio.MakeDir ||
			r.Op == clientio.Open {
			t.Skip()
		}
		if r.Root == "" && !strings.HasPrefix(string(r.Path), "/proc") {
			r.Root = clientio.Path(t.TempDir())
		}
		if answer, _ := New().Do(t.Context(), r); answer.ID != r.ID {
			t.Errorf("the response has id %d, want %d", answer.ID, r.ID)
		}
	})
}

// A service.json that another user creates in /tmp must not apply to projects below /tmp.
func TestFind_PassesByWhatOthersPlant(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can create files of other users")
	}
	dir := t.TempDir()
	shared := filepath.Join(dir, "shared")
	work := filepath.Join(shared, "mine", "project")
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string, owner int) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "service.json"), "ours", 0)
	write(filepath.Join(shared, "service.json"), "planted", 65534)
	find := func() string {
		r := clientio.Request{Op: clientio.Find, Path: clientio.Path(work), Name: "service.json", Limit: 99}
		return string(ask(t, r).Data)
	}
	if got := find(); got != "planted" { // owned by another user
		t.Errorf("in a folder that only its owner can write to: found %q, want planted", got)
	}
	if err := os.Chmod(shared, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if got := find(); got != "ours" {
		t.Errorf("found %q, want ours", got)
	}
	write(filepath.Join(shared, "service.json"), strings.Repeat("planted", 99), 65534) // longer than the limit
	if got := find(); got != "ours" {
		t.Errorf("in the parent of an overlong file: found %q, want ours", got)
	}
	write(filepath.Join(dir, "elsewhere"), "another project of ours", 0)
	for _, target := range []string{filepath.Join(dir, "elsewhere"), "service.json"} { // the second link points to itself
		link := filepath.Join(shared, "service.json")
		if err := errors.Join(os.Remove(link), os.Symlink(target, link), os.Lchown(link, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		if got := find(); got != "ours" {
			t.Errorf("in the parent of a link to %s: found %q, want ours", target, got)
		}
	}
	if err := os.Remove(filepath.Join(shared, "service.json")); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(shared, "service.json"), "my own", 0)
	if got := find(); got != "my own" {
		t.Errorf("found %q, want my own", got)
	}
}

// exchanging is the whole file system, in which another user replaces a file as soon as it has been opened.
type exchanging struct {
	wholeSystem
	exchange func()
}

func (e exchanging) OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	f, err := e.wholeSystem.OpenFile(path, flag, mode)
	e.exchange()
	return f, err
}

// The owner of the file that was read counts, not the owner of a file that replaces it afterwards.
func TestFind_PassesByWhatIsExchanged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can create files of other users")
	}
	dir := t.TempDir()
	path, ours := filepath.Join(dir, "service.json"), filepath.Join(dir, "ours")
	err := errors.Join(os.Chmod(dir, 0o777|os.ModeSticky), os.WriteFile(path, []byte("planted"), 0o644),
		os.Chown(path, 65534, 65534), os.WriteFile(ours, []byte("ours"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	files := exchanging{exchange: func() { _ = os.Rename(ours, path) }}
	if _, data, err := find(files, dir, "service.json", 99); err == nil {
		t.Errorf("found %q of another user", data)
	}
}
