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

	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/statefile"
	contract "github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/problem"
)

// Limits on fixtures, in bytes.
const (
	maxFixture  = 16 << 20  // one file; the simulator accepts no larger ones
	maxFixtures = 256 << 20 // all files of one session
	maxCopies   = 1 << 30   // all files of all sessions
)

// fixturesFolder contains the session's copy of its fixtures. The simulator reads the copy, because a client chooses
// the directory.
const fixturesFolder = "fixtures"

// fixtureFolders are the subdirectories that the simulator reads.
var fixtureFolders = []string{"photos", "frames"}

// isFixture reports whether the simulator reads a file with this name.
func isFixture(name string) bool {
	return isPicture(name) || strings.ToLower(path.Ext(name)) == ".wav" || name == "clip.mjpeg" ||
		name == "transcripts.json"
}

// fixturesCopy returns the directory that the simulator reads, or "" if it uses its own pictures and sounds.
func (s *localSession) fixturesCopy(m meta) string {
	if m.FixturesDir == "" {
		return ""
	}
	return filepath.Join(s.folder(), fixturesFolder)
}

// copyFixtures updates the session's copy from the client's directory. It does not rewrite unchanged
// files.
func (s *localSession) copyFixtures(ctx context.Context, files clientio.Files, dir string) error {
	if dir == "" {
		return nil
	}
	c := fixtureCopy{
		files: files.In(dir), to: filepath.Join(s.folder(), fixturesFolder), kept: map[string]bool{},
		others: s.otherFixtures(),
	}
	for _, folder := range append([]string{"."}, fixtureFolders...) {
		if err := c.folder(ctx, folder); err != nil {
			return fixturesProblem(dir, err)
		}
	}
	if err := c.removeStale(); err != nil {
		return stateProblem("copy the fixtures", err)
	}
	if len(c.kept) == 0 {
		return invalid("fixturesDir contains no pictures (.jpg, .png) and no sound (.wav): "+dir, fixturesHint)
	}
	return nil
}

type fixtureCopy struct {
	files clientio.Files
	to    string
	kept  map[string]bool // relative paths
	size  int64
	// others is the total size of the copies of all other sessions.
	others int64
}

// otherFixtures returns the total size of the copies of all other sessions. The total is limited, because a client may
// open many sessions.
func (s *localSession) otherFixtures() (size int64) {
	folders, _ := os.ReadDir(s.owner.root) // ignore an unreadable directory
	for _, folder := range folders {
		if folder.Name() == s.id {
			continue
		}
		fixtures := filepath.Join(s.owner.root, folder.Name(), fixturesFolder)
		_ = filepath.WalkDir(fixtures, func(_ string, d fs.DirEntry, err error) error {
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

// folder copies the fixtures in a directory.
func (c *fixtureCopy) folder(ctx context.Context, folder string) error {
	entries, err := c.files.List(ctx, folder)
	if folder != "." && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(c.to, folder), 0o700); err != nil {
		return stateProblem("copy the fixtures", err)
	}
	for _, e := range entries {
		isWanted := isPicture
		if folder == "." {
			isWanted = isFixture
		}
		if e.Kind != contract.KindFile || !isWanted(string(e.Name)) {
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
		return invalid("the files of fixturesDir exceed 256 MB", "Omit pictures that the test does not need.")
	}
	if c.size+c.others > maxCopies {
		return problem.New(problem.CodeTooManySessions, "the fixtures of all local sessions exceed 1 GB in total",
			"Close unused local sessions, or omit pictures that the test does not need.")
	}
	to := filepath.Join(c.to, filepath.FromSlash(name))
	c.kept[to] = true
	if old, err := statefile.Read(to, maxFixture); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := statefile.Write(to, data); err != nil {
		return stateProblem("copy the fixtures", err)
	}
	return nil
}

// removeStale removes the copies of files that no longer exist.
func (c *fixtureCopy) removeStale() error {
	return filepath.WalkDir(c.to, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || c.kept[name] {
			return err
		}
		return os.Remove(name)
	})
}

func fixturesProblem(dir string, err error) error {
	var p *problem.Error
	switch {
	case errors.As(err, &p):
		return p
	case clientio.IsUnavailable(err):
		return problem.New(problem.CodeClientFilesUnavailable, err.Error(),
			"Connect through service-mcp or use servicectl, or leave fixturesDir out.")
	case errors.Is(err, fs.ErrNotExist):
		return notFixtures(dir)
	}
	return invalid(fmt.Sprintf("the fixtures in %s cannot be read: %v", dir, err), fixturesHint)
}

const fixturesHint = "Pass the path of a folder with pictures and sounds, or leave it out."

func notFixtures(dir string) error {
	return invalid("fixturesDir must be a folder: "+dir, fixturesHint)
}
