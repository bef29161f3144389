package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/statefile"
	contract "github.com/service-dev/service/proto/clientio"
)

// Bounds of a folder of fixtures, in bytes.
const (
	maxFixture  = 16 << 20  // one file; the simulator takes no larger one
	maxFixtures = 256 << 20 // all files
	maxCopies   = 1 << 30   // all files of all sessions
)

// fixturesFolder holds a session's copy of its fixtures: the simulator reads no folder that a client names.
const fixturesFolder = "fixtures"

// fixtureFolders and isFixture name what the simulator looks for in a folder of fixtures.
var fixtureFolders = []string{"photos", "frames"}

func isFixture(name string) bool {
	switch name {
	case "photo.png", "photo.jpeg", "photo.jpg", "clip.mjpeg", "audio.wav", "transcripts.json":
		return true
	}
	return false
}

// fixtures is the folder that the simulator reads; empty for its own pictures and sounds. mu is held.
func (r *room) fixtures() string {
	if r.meta.FixturesDir == "" {
		return ""
	}
	return filepath.Join(r.folder(), fixturesFolder)
}

// copyFixtures brings the session's copy to what is in the client's folder. Files that did not change stay as they are.
func (r *room) copyFixtures(ctx context.Context, files clientio.Files, dir string) error {
	if dir == "" {
		return nil
	}
	c := fixtureCopy{files: files.In(dir), to: filepath.Join(r.folder(), fixturesFolder), kept: map[string]bool{}, others: r.otherFixtures()}
	for _, folder := range append([]string{"."}, fixtureFolders...) {
		if err := c.folder(ctx, folder); err != nil {
			return fixturesProblem(dir, err)
		}
	}
	if err := c.dropOthers(); err != nil {
		return stateProblem("copying the fixtures", err)
	}
	return nil
}

type fixtureCopy struct {
	files clientio.Files
	to    string
	kept  map[string]bool // relative paths
	size  int64
	// others is the size of the copies of all other sessions.
	others int64
}

// otherFixtures is the size of what the other sessions have copied: a client may open many, each with as much as it may.
func (r *room) otherFixtures() (size int64) {
	sessions, _ := os.ReadDir(r.l.root) // what cannot be read does not count
	for _, s := range sessions {
		if s.Name() == r.id {
			continue
		}
		_ = filepath.WalkDir(filepath.Join(r.l.root, s.Name(), fixturesFolder), func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
			return nil
		})
	}
	return size
}

// folder copies the files of a folder. Those of the first level are the ones that have a meaning.
func (c *fixtureCopy) folder(ctx context.Context, folder string) error {
	entries, err := c.files.List(ctx, folder)
	if folder != "." && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(c.to, folder), 0o700); err != nil {
		return stateProblem("copying the fixtures", err)
	}
	for _, e := range entries {
		if e.Kind != contract.KindFile || folder == "." && !isFixture(string(e.Name)) || folder != "." && !isPicture(string(e.Name)) {
			continue
		}
		if err := c.file(ctx, path.Join(folder, string(e.Name))); err != nil {
			return err
		}
	}
	return nil
}

func isPicture(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".jpg", ".jpeg", ".png":
		return true
	}
	return false
}

func (c *fixtureCopy) file(ctx context.Context, name string) error {
	data, err := c.files.Read(ctx, name, maxFixture)
	if err != nil {
		return err
	}
	if c.size += int64(len(data)); c.size > maxFixtures {
		return invalid("the files of fixturesDir have more than 256 MB", "leave out pictures that the test does not need")
	}
	if c.size+c.others > maxCopies {
		return &backend.Problem{Code: backend.CodeTooManySessions, Message: "the fixtures of all local sessions together have more than 1 GB",
			FixHint: "close local sessions that are not used any more, or leave out pictures that the test does not need"}
	}
	to := filepath.Join(c.to, filepath.FromSlash(name))
	c.kept[to] = true
	if old, err := statefile.Read(to, maxFixture); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := statefile.Write(to, data); err != nil {
		return stateProblem("copying the fixtures", err)
	}
	return nil
}

// dropOthers removes the copies of files that are gone.
func (c *fixtureCopy) dropOthers() error {
	return filepath.WalkDir(c.to, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || c.kept[name] {
			return err
		}
		return os.Remove(name)
	})
}

func fixturesProblem(dir string, err error) error {
	var p *backend.Problem
	switch {
	case errors.As(err, &p):
		return p
	case clientio.IsUnavailable(err):
		return &backend.Problem{Code: clientio.CodeUnavailable, Message: err.Error(), FixHint: "connect through service-mcp or use servicectl, or leave fixturesDir out"}
	case errors.Is(err, fs.ErrNotExist):
		return notFixtures(dir)
	}
	return invalid(fmt.Sprintf("the fixtures in %s cannot be read: %v", dir, err), "pass the path of a folder with pictures and sounds, or leave it out")
}

func notFixtures(dir string) error {
	return invalid("fixturesDir is not a folder: "+dir, "pass the path of a folder with pictures and sounds, or leave it out")
}
