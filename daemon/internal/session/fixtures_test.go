package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/problem"
)

// hostileClient lists a folder with names that lead out of it, and returns every requested file.
type hostileClient struct {
	folder string
	names  []string
}

func (l hostileClient) Do(_ context.Context, r clientio.Request) (clientio.Response, error) {
	answer := clientio.Response{ID: r.ID}
	switch r.Op {
	case clientio.List:
		if string(r.Path) == l.folder {
			for _, name := range l.names {
				answer.Entries = append(answer.Entries, clientio.Entry{Name: clientio.Path(name), Kind: clientio.KindFile})
			}
		}
	case clientio.Read:
		answer.Data = []byte("written by the daemon")
	}
	return answer, nil
}

// A client's response may contain anything. A name that it lists must not become a path outside the session's folder.
func TestFixtures_IgnoreNamesOutsideFolder(t *testing.T) {
	root := t.TempDir()
	outside := filepath.Join(root, "outside.png")
	for name, names := range map[string][]string{
		"upward": {strings.Repeat("../", 3) + "outside.png", strings.Repeat("../", 4) + "outside.png",
			strings.Repeat("../", 5) + "outside.png"},
		"absolute":      {outside},
		"a folder":      {"a/b.png"},
		"the folder":    {"..", ".", ""},
		"a NUL":         {"a\x00.png"},
		"and beside it": {"good.png", "../../../../outside.png"},
	} {
		for _, folder := range fixtureFolders {
			t.Run(name+" in "+folder, func(t *testing.T) {
				m := newLocal(t, filepath.Join(root, "state"), &fakeTransports{}, nil)
				who := caller.Caller{Cwd: t.TempDir(), IO: hostileClient{folder: folder, names: names}}
				_, err := m.StartLocal(t.Context(), who,
					LocalRequest{Project: "com.example.app", FixturesDir: "/fixtures", Fresh: true})
				if code(err) != problem.CodeInvalidRequest {
					t.Errorf("taken: %v", err)
				}
				if _, err := os.Stat(outside); err == nil {
					t.Error("a file was written outside the session's folder")
				}
				_ = os.Remove(outside)
			})
		}
	}
}

// The session copies pictures and sounds of any name, and refuses a folder that has none.
func TestFixtures_OfAnyName(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	dir := t.TempDir()
	write := func(names ...string) {
		t.Helper()
		for _, name := range names {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(name), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("notes.txt", "picture.gif")
	want := LocalRequest{Project: "com.example.app", FixturesDir: dir}
	if _, err := m.StartLocal(t.Context(), from(dir), want); code(err) != problem.CodeInvalidRequest ||
		!strings.Contains(err.Error(), ".jpg") {
		t.Errorf("a folder without pictures and sounds: %v, want invalid_request that names the files", err)
	}
	write("a.jpg", "B.PNG", "voice.wav", "photos/c.jpeg", "frames/d.png", "transcripts.json", "clip.mjpeg")
	o, err := m.StartLocal(t.Context(), from(dir), want)
	if err != nil {
		t.Fatal(err)
	}
	var copied []string
	root := filepath.Join(m.local.root, o.SessionID, fixturesFolder)
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(root, path)
			copied = append(copied, filepath.ToSlash(name))
		}
		return err
	})
	if got := strings.Join(copied, " "); got != "B.PNG a.jpg clip.mjpeg frames/d.png photos/c.jpeg transcripts.json voice.wav" {
		t.Errorf("copied %s", got)
	}
}

// Many sessions with the maximum size of fixtures do not fill the disk.
func TestFixtures_LimitAllSessions(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	first := start(t, m, LocalRequest{Project: "com.example.app"})
	copies := filepath.Join(m.local.root, first.SessionID, fixturesFolder)
	if err := os.MkdirAll(copies, 0o700); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(copies, "photo.png") // a sparse file
	if err := errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, maxCopies)); err != nil {
		t.Fatal(err)
	}
	who := caller.Caller{Cwd: t.TempDir(), IO: hostileClient{folder: ".", names: []string{"photo.png"}}}
	want := LocalRequest{Project: "com.example.other", FixturesDir: "/fixtures"}
	if _, err := m.StartLocal(t.Context(), who, want); code(err) != problem.CodeTooManySessions {
		t.Errorf("above the limit of all sessions: %v, want too_many_sessions", err)
	}
	if list, _ := m.List(t.Context(), backend.Target{}); len(list) != 1 {
		t.Errorf("the refused session was left behind: %+v", list)
	}
	if _, err := m.Close(t.Context(), backend.Target{}, first.SessionID); err != nil {
		t.Fatal(err)
	}
	if _, err := m.StartLocal(t.Context(), who, want); err != nil {
		t.Errorf("after the other session was closed: %v, want no error", err)
	}
}
