// Package identity stores the anonymous install ID in install.json, together with the times of the first-run notice and
// the version that ran last. The ID is created at the first start and never changes. The package must not depend on
// accounts, because the ID is never tied to one.
package identity

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/statefile"
)

// FileName is the file's name inside the state directory.
const FileName = "install.json"

// lockName is the name of the file that is locked while install.json is changed.
const lockName = "install.lock"

// maxFile is the maximum size of the file, in bytes.
const maxFile = 64 << 10

// Install is the identity of this install. Its ID does not change while a daemon runs.
type Install struct {
	path string
	id   string
	lock *statefile.Lock // held while the file is changed
	// noticed caches the results of NoticeShownAt, by Audience. A result never changes once it is known.
	noticed sync.Map
}

// Open reads the install ID, or creates it at the first start. Concurrent first starts use the same ID. If the file
// cannot be parsed, Open logs the error, renames the file to install.json.corrupt-<time> and creates a new ID.
func Open(dir string, now time.Time, log *slog.Logger) (*Install, error) {
	path := filepath.Join(dir, FileName)
	for range 3 { // another process may create or rename the file between the two steps
		data, err := statefile.Read(path, maxFile)
		if errors.Is(err, fs.ErrNotExist) {
			if err := create(path); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
			continue
		}
		if err != nil && !errors.Is(err, statefile.ErrTooLarge) {
			return nil, err
		}
		var id string
		if err == nil {
			id, err = parse(data)
		}
		if err == nil {
			return &Install{path: path, id: id, lock: statefile.NewLock(filepath.Join(dir, lockName))}, nil
		}
		aside := path + ".corrupt-" + now.UTC().Format("20060102T150405Z")
		log.Warn("failed to parse install.json; keeping a copy and creating a new install id", "err", err, "path",
			aside)
		if err := os.Rename(path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("rename %s: %w", path, err)
		}
	}
	return nil, fmt.Errorf("read %s: other programs keep changing it", path)
}

// Temporary returns an identity that is not stored, for a process that cannot write to dir.
func Temporary(dir string) *Install {
	return &Install{path: filepath.Join(dir, FileName), id: newID(),
		lock: statefile.NewLock(filepath.Join(dir, lockName))}
}

func newID() string { return "inst_" + strings.ToLower(rand.Text()) }

// ID returns the install ID, "inst_<suffix>". It is not a secret.
func (i *Install) ID() string { return i.id }

// Path returns the file's absolute path.
func (i *Install) Path() string { return i.path }

func create(path string) error {
	data, err := json.MarshalIndent(map[string]string{"installId": newID()}, "", "  ")
	if err != nil {
		return err
	}
	return statefile.Create(path, append(data, '\n'))
}

var idPattern = regexp.MustCompile(`^inst_[A-Za-z0-9_-]+$`)

// validID reports whether id has the format that backends require.
func validID(id string) bool {
	n := len(id) - len("inst_")
	return n >= 4 && n <= 64 && idPattern.MatchString(id)
}

// parse returns the ID in the file.
func parse(data []byte) (string, error) {
	var file struct {
		InstallID string `json:"installId"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return "", errors.New("must be a JSON object with the string installId")
	}
	if !validID(file.InstallID) {
		return "", errors.New("installId must have the form inst_<suffix>")
	}
	return file.InstallID, nil
}
