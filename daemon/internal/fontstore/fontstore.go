// Package fontstore stores the font files that the user adds to this machine, in the subdirectory fonts of the state
// directory. Programs that draw local sessions use these fonts for characters that the built-in fonts lack.
package fontstore

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/glasses/render/fonts"
	"github.com/service-dev/service/internal/problem"
)

// Dir is the name of the subdirectory of the state directory. Its file indexName lists the fonts; all other files are
// fonts, named by their hash.
const (
	Dir       = "fonts"
	indexName = "fonts.json"
)

// maxIndex is the maximum size of the list, in bytes.
const maxIndex = 64 << 10

const (
	minHashPrefix   = 8
	unreadableIndex = indexName + ".corrupt-"
)

// Font describes a stored font file.
type Font struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Weight int    `json:"weight"`
	Italic bool   `json:"italic"`
	Bytes  int64  `json:"bytes"`
	// Problem is the reason why the font is not used; empty if the font is used.
	Problem string `json:"-"`
}

// index is the content of the list.
type index struct {
	Fonts []Font `json:"fonts"`
}

// Options configures a Store.
type Options struct {
	// StateDir is the service's state directory, which contains the added fonts.
	StateDir string
	// Use passes the list of added fonts to the adapters.
	Use func(ctx context.Context, list []fonts.Added)
	Log *slog.Logger
	Now func() time.Time
}

// Store holds the added fonts. It is safe for concurrent use. A process must have only one Store, because its drawing
// code has one list of fonts.
type Store struct {
	o   Options
	dir string

	mu   sync.Mutex
	list []Font

	failedMu sync.Mutex
	failed   map[string]error // why the drawing code ignores a font, by hash
}

// Open reads the list and passes it to the drawing code. It rebuilds an unusable list from the files.
func Open(o Options) *Store {
	s := &Store{o: o, dir: filepath.Join(o.StateDir, Dir), failed: map[string]error{}}
	if list, err := s.read(); err != nil {
		s.rebuild(err)
	} else {
		s.list = list
		s.sweep()
	}
	s.use(context.Background())
	return s
}

// rebuild creates the list from the intact font files. It replaces a missing or corrupt list. It does not replace a
// list that could not be read, because the list may become readable again.
func (s *Store) rebuild(cause error) {
	s.list = s.wholeFonts()
	isMissing := errors.Is(cause, fs.ErrNotExist)
	if isMissing && len(s.list) == 0 {
		return // no font has been added yet
	}
	s.o.Log.Warn("rebuilt the list of added fonts from their files", "count", len(s.list), "err", cause)
	switch {
	case errors.Is(cause, errCorrupt):
		corrupt := filepath.Join(s.dir, unreadableIndex+s.o.Now().UTC().Format("20060102T150405Z"))
		_ = os.Rename(filepath.Join(s.dir, indexName), corrupt) // if it fails, the rebuilt list replaces it
	case !isMissing:
		return
	}
	if err := s.write(s.list); err != nil {
		s.o.Log.Warn("failed to write the list of added fonts", "err", err)
	}
}

// errCorrupt is returned for a list that was read but is invalid.
var errCorrupt = errors.New("the list is corrupt")

func (s *Store) read() ([]Font, error) {
	data, err := statefile.Read(filepath.Join(s.dir, indexName), maxIndex)
	if err != nil {
		return nil, err
	}
	var all index
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	for _, f := range all.Fonts {
		if !isHash(f.SHA256) || len(all.Fonts) > fonts.MaxAdded {
			return nil, fmt.Errorf("%w: hash %q is invalid, or there are more than %d fonts", errCorrupt, f.SHA256,
				fonts.MaxAdded)
		}
	}
	return all.Fonts, nil
}

func isHash(name string) bool {
	hash, err := hex.DecodeString(name)
	return err == nil && len(hash) == 32
}

// wholeFonts returns the fonts whose files are intact, in the order in which the files were written.
func (s *Store) wholeFonts() []Font {
	entries, _ := os.ReadDir(s.dir)
	written := map[string]time.Time{}
	var list []Font
	for _, e := range entries {
		data, err := statefile.Read(filepath.Join(s.dir, e.Name()), fonts.MaxFile)
		if !isHash(e.Name()) || err != nil || fonts.Hash(data) != e.Name() {
			continue
		}
		info, err := fonts.Check(data)
		stat, statErr := e.Info()
		if err != nil || statErr != nil {
			continue
		}
		written[e.Name()] = stat.ModTime()
		list = append(list, fontOf(info, data))
	}
	slices.SortFunc(list, func(a, b Font) int { return written[a.SHA256].Compare(written[b.SHA256]) })
	return list[:min(len(list), fonts.MaxAdded)]
}

func fontOf(info fonts.Info, data []byte) Font {
	return Font{Name: info.Name, SHA256: fonts.Hash(data), Weight: info.Weight, Italic: info.Italic,
		Bytes: int64(len(data))}
}

// sweep removes files that a killed writer left behind.
func (s *Store) sweep() {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return // the directory does not exist, or its files cannot be removed
	}
	for _, e := range entries {
		if isHash(e.Name()) && s.find(e.Name()) < 0 {
			err = errors.Join(err, os.Remove(filepath.Join(s.dir, e.Name())))
		}
	}
	if err := errors.Join(err, statefile.Sweep(s.dir, s.o.Now())); err != nil {
		s.o.Log.Warn("failed to remove leftover font files", "err", err)
	}
}

// find returns the index of the font with this hash, or -1.
func (s *Store) find(hash string) int {
	return slices.IndexFunc(s.list, func(f Font) bool { return f.SHA256 == hash })
}

// List returns the fonts in the order in which they were added, including problems of their files.
func (s *Store) List() []Font {
	s.mu.Lock()
	list := slices.Clone(s.list)
	s.mu.Unlock()
	for i := range list {
		f := &list[i]
		data, err := statefile.Read(s.file(*f), fonts.MaxFile)
		switch {
		case err != nil:
			f.Problem = "its file cannot be read: " + err.Error()
		case fonts.Hash(data) != f.SHA256:
			f.Problem = "its file has changed"
		default:
			f.Problem = s.problem(f.SHA256)
		}
	}
	return list
}

func (s *Store) problem(hash string) string {
	s.failedMu.Lock()
	defer s.failedMu.Unlock()
	if err := s.failed[hash]; err != nil {
		return err.Error()
	}
	return ""
}

// Add checks a font file and stores it. The font is in use when Add returns. It returns a *problem.Error on failure.
func (s *Store) Add(ctx context.Context, data []byte) (Font, error) {
	info, err := fonts.Check(data)
	if err != nil {
		return Font{}, err
	}
	f := fontOf(info, data)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.find(f.SHA256)
	switch {
	case at >= 0 && s.isWhole(s.list[at]):
		return Font{}, &problem.Error{Code: problem.CodeFontDuplicate, Message: "this font has already been added as " + f.Name,
			FixHint: "No action is needed: `servicectl fonts list` shows it."}
	case at < 0 && len(s.list) >= fonts.MaxAdded:
		return Font{}, &problem.Error{Code: problem.CodeFontTooMany, Message: fmt.Sprintf("%d fonts are already added",
			len(s.list)),
			FixHint: "Remove one that is not needed with `servicectl fonts remove NAME`, then add this one."}
	}
	if err := errors.Join(statefile.EnsureDir(s.o.StateDir), statefile.EnsureDir(s.dir)); err != nil {
		return Font{}, unwritable(err)
	}
	if err := statefile.Write(s.file(f), data); err != nil {
		return Font{}, unwritable(err)
	}
	if at < 0 { // otherwise only a damaged file was repaired
		if err := s.write(append(slices.Clone(s.list), f)); err != nil {
			_, _ = statefile.Remove(s.file(f)) // if it fails, the next start removes it
			return Font{}, unwritable(err)
		}
	}
	s.use(ctx)
	return f, nil
}

// isWhole reports whether a font's file is intact.
func (s *Store) isWhole(f Font) bool {
	data, err := statefile.Read(s.file(f), fonts.MaxFile)
	return err == nil && fonts.Hash(data) == f.SHA256
}

// Remove removes the font whose name is name, or whose hash begins with name. It returns a *problem.Error on
// failure.
func (s *Store) Remove(ctx context.Context, name string) (Font, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Font
	for _, f := range s.list {
		if strings.EqualFold(f.Name, name) ||
			len(name) >= minHashPrefix && strings.HasPrefix(f.SHA256, strings.ToLower(name)) {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 0:
		return Font{}, &problem.Error{Code: problem.CodeFontNotFound, Message: fmt.Sprintf("no added font has the name %q",
			name),
			FixHint: "Pass a name or the start of a SHA-256 that `servicectl fonts list` shows."}
	case 1:
	default:
		return Font{}, &problem.Error{Code: problem.CodeFontNotFound, Message: fmt.Sprintf("%d added fonts have the name %q",
			len(found), name),
			FixHint: "Pass the start of the SHA-256 of one of them, which `servicectl fonts list` shows."}
	}
	f := found[0]
	rest := slices.DeleteFunc(slices.Clone(s.list), func(o Font) bool { return o.SHA256 == f.SHA256 })
	if err := s.write(rest); err != nil {
		return Font{}, unwritable(err)
	}
	if _, err := statefile.Remove(s.file(f)); err != nil {
		s.o.Log.Warn("failed to remove the file of a removed font", "font", f.Name, "err", err)
	}
	s.use(ctx)
	return f, nil
}

// write replaces the list. The caller holds mu.
func (s *Store) write(list []Font) error {
	data, err := json.MarshalIndent(index{list}, "", "  ")
	if err == nil {
		err = statefile.Write(filepath.Join(s.dir, indexName), append(data, '\n'))
	}
	if err == nil {
		s.list = list
	}
	return err
}

func (s *Store) file(f Font) string { return filepath.Join(s.dir, f.SHA256) }

// use passes the list to the drawing code of this process and to the adapters.
func (s *Store) use(ctx context.Context) {
	list := make([]fonts.Added, 0, len(s.list))
	for _, f := range s.list {
		list = append(list, fonts.Added{Name: f.Name, SHA256: f.SHA256, Bold: fonts.Info{Weight: f.Weight}.Bold(),
			File: s.file(f)})
	}
	s.failedMu.Lock()
	clear(s.failed)
	s.failedMu.Unlock()
	fonts.SetAdded(list, func(a fonts.Added, err error) {
		s.o.Log.Warn("ignored an added font", "font", a.Name, "sha256", a.SHA256, "err", err)
		s.failedMu.Lock()
		defer s.failedMu.Unlock()
		s.failed[a.SHA256] = err
	})
	s.o.Use(context.WithoutCancel(ctx), list) // the list has changed, even if the caller has given up
}

func unwritable(err error) error {
	return &problem.Error{Code: problem.CodeStateUnwritable, Message: "the font could not be stored: " + err.Error(),
		FixHint: "Check the free space and permissions of the state directory, which `servicectl doctor` shows."}
}
