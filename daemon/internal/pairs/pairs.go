// Package pairs remembers the real glasses that the user connected to this computer: their addresses and the user's
// descriptions of their panels. It stores them in the file glasses.json of the state directory. These data never leave
// the computer.
package pairs

import (
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
	"unicode"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/glasses/uncleared"
	"github.com/service-dev/service/internal/problem"
)

// Limits of the file.
const (
	// Max is the maximum number of pairs; the least recently used ones are forgotten.
	Max     = 32
	maxFile = 256 << 10
	maxText = 100 // bytes
)

const fileName = "glasses.json"

// Known is a pair that has been connected to this computer.
type Known struct {
	backend.Pair
	DeviceModel string    `json:"deviceModel"`
	UsedAt      time.Time `json:"usedAt"`
	// Uncleared is set if the pair's adapter has not confirmed that the panel is dark. This is also the case while the
	// pair is connected.
	Uncleared bool `json:"-"`
}

func (k Known) is(deviceModel, name string) bool {
	return k.DeviceModel == deviceModel && strings.EqualFold(k.Name, name)
}

// file is the content of glasses.json.
type file struct {
	Pairs []Known `json:"pairs"`
}

// Store holds the remembered pairs. It is safe for concurrent use.
type Store struct {
	dir, path string
	now       func() time.Time

	mu   sync.Mutex
	list []Known // most recently used first
}

// Open reads the file. It renames an unusable file and then treats it as empty.
func Open(stateDir string, now func() time.Time, log *slog.Logger) *Store {
	s := &Store{dir: stateDir, path: filepath.Join(stateDir, fileName), now: now}
	data, err := statefile.Read(s.path, maxFile)
	var f file
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	switch {
	case err == nil:
		s.list = slices.DeleteFunc(f.Pairs, func(k Known) bool { return !isUsable(k) })
		s.list = s.list[:min(len(s.list), Max)]
	case !errors.Is(err, fs.ErrNotExist):
		log.Warn("failed to read the remembered glasses", "err", err)
		aside := s.path + ".corrupt-" + now().UTC().Format("20060102T150405Z")
		if err := os.Rename(s.path, aside); err != nil {
			log.Warn("failed to rename an unusable file", "path", s.path, "err", err)
		}
	}
	return s
}

// isUsable reports whether a pair has a name and all its fields are within their limits.
func isUsable(k Known) bool {
	size := 0
	for key, address := range k.Addresses {
		size += len(key) + len(address)
	}
	return k.Name != "" && len(k.Name) <= maxText && k.DeviceModel != "" && len(k.DeviceModel) <= maxText &&
		size <= 8*maxText &&
		k.Rows >= 0 && k.Rows <= 4096 && !strings.ContainsFunc(k.Name, unicode.IsControl)
}

// List returns the pairs, most recently used first.
func (s *Store) List() []Known {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.list)
	for i, k := range list {
		list[i].Uncleared = s.IsUncleared(k.DeviceModel, k.Name)
	}
	return list
}

// IsUncleared reports whether the adapter of a pair has not confirmed that its panel is dark.
func (s *Store) IsUncleared(deviceModel, name string) bool {
	return uncleared.Has(s.dir, uncleared.Pair{DeviceModel: deviceModel, Name: name})
}

// mark returns the key of the mark that the adapter sets for the pair.
func (k Known) mark() uncleared.Pair { return uncleared.Pair{DeviceModel: k.DeviceModel, Name: k.Name} }

// Last returns the most recently used pair of a model. The pair has no name if there is none.
func (s *Store) Last(deviceModel string) backend.Pair {
	for _, k := range s.List() {
		if k.DeviceModel == deviceModel {
			return k.Pair
		}
	}
	return backend.Pair{}
}

// Named returns the pair with this name, ignoring case. If the pair is unknown, only its name is set.
func (s *Store) Named(deviceModel, name string) backend.Pair {
	for _, k := range s.List() {
		if k.is(deviceModel, name) {
			return k.Pair
		}
	}
	return backend.Pair{Name: name}
}

// Use remembers that a pair was connected. It keeps the stored panel settings. It also keeps the stored addresses if p
// has none, as with a connection through a page in the browser.
func (s *Store) Use(deviceModel string, p backend.Pair) error {
	used := Known{Pair: p, DeviceModel: deviceModel, UsedAt: s.now().UTC()}
	if !isUsable(used) {
		return fmt.Errorf("remember the glasses: a pair named %.20q cannot be stored", p.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(s.list), func(k Known) bool {
		isSame := k.is(deviceModel, p.Name)
		if isSame {
			used.PairPanel = k.PairPanel
		}
		if isSame && len(used.Addresses) == 0 {
			used.Addresses = k.Addresses
		}
		return isSame
	})
	list = slices.Insert(list, 0, used)
	return s.save(list[:min(len(list), Max)])
}

// SetPanel stores the user's description of the panel of a remembered pair.
func (s *Store) SetPanel(deviceModel, name string, panel backend.PairPanel) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.list)
	i := slices.IndexFunc(list, func(k Known) bool { return k.is(deviceModel, name) })
	if i < 0 {
		return unknownPair(name)
	}
	list[i].PairPanel = panel
	if !isUsable(list[i]) {
		return &problem.Error{Code: "invalid_request", Message: fmt.Sprintf("a panel cannot have %d rows", panel.Rows),
			FixHint: "Pass the number of rows that the panel shows."}
	}
	return s.save(list)
}

// Forget removes the pairs with this name, ignoring case.
func (s *Store) Forget(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var marks error
	list := slices.DeleteFunc(slices.Clone(s.list), func(k Known) bool {
		isForgotten := strings.EqualFold(k.Name, name)
		if isForgotten {
			marks = errors.Join(marks, uncleared.Unmark(s.dir, k.mark()))
		}
		return isForgotten
	})
	if len(list) == len(s.list) {
		return unknownPair(name)
	}
	return errors.Join(s.save(list), marks)
}

func unknownPair(name string) error {
	return &problem.Error{Code: problem.CodeNotFound, Message: fmt.Sprintf("no pair named %.100q is remembered", name),
		FixHint: "Run `servicectl glasses list --known` to see the remembered glasses."}
}

// save writes the list. The caller holds mu.
func (s *Store) save(list []Known) error {
	data, err := json.MarshalIndent(file{list}, "", "  ")
	if err == nil {
		err = statefile.Write(s.path, data)
	}
	if err != nil {
		return fmt.Errorf("save the remembered glasses: %w", err)
	}
	s.list = list
	return nil
}
