package pluginhost

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/internal/adapterfile"
)

// copiesDir is the folder in the state directory that contains the programs of the added adapters, each named by its
// checksum. Only these copies are run, because a program that can write to the original's folder could replace the
// original between its check and its start.
const copiesDir = "adapters"

// copyOf returns the path of an added adapter's copy. It makes the copy if there is no intact one. It refuses a program
// if the copied bytes differ from the approved ones.
func (h *Host) copyOf(a addedAdapter) (string, error) {
	dir := filepath.Join(h.opts.ConfigDir, copiesDir)
	path := filepath.Join(dir, a.SHA256+copySuffix)
	if err := statefile.EnsureDir(dir); err != nil {
		return "", err
	}
	if isOwnProgram(path) {
		if sum, err := adapterfile.Copy(path, nil); err == nil && sum == a.SHA256 {
			return path, nil
		}
	}
	temp, sum, err := copyProgram(a.Path, dir, a.SHA256)
	if err != nil {
		return "", fmt.Errorf("copy %s to the state directory: %w", a.Path, err)
	}
	if sum != a.SHA256 {
		_ = os.Remove(temp)
		return "", changedProgram(a)
	}
	if err := os.Rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return "", err
	}
	return path, nil
}

// isOwnProgram reports whether copyProgram could have created a file: it is executable, not a link, and not writable by
// other users.
func isOwnProgram(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && isExecutable(info) && info.Mode().Perm()&0o022 == 0
}

// copyProgram copies a program to an executable temporary file in dir, and returns the checksum of the copied bytes.
func copyProgram(path, dir, name string) (temp, sum string, err error) {
	// Prevent forks while the file is open for writing. A process forked now would inherit the open file until it
	// executes its own program, and the system refuses to run a program that is open for writing.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	file, err := os.CreateTemp(dir, "."+name+".tmp-*")
	if err != nil {
		return "", "", err
	}
	sum, err = adapterfile.Copy(path, file)
	if err = errors.Join(err, file.Chmod(0o500), file.Close()); err != nil {
		_ = os.Remove(file.Name())
		return "", "", err
	}
	return file.Name(), sum, nil
}

// sweepCopies removes copies of adapters that are not in the list, and files that killed writers left behind. On
// Windows a running copy cannot be removed until the next start of the daemon.
func (h *Host) sweepCopies(list []*adapter) {
	dir := filepath.Join(h.opts.ConfigDir, copiesDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // no adapter has been added yet
	}
	for _, e := range entries {
		sum := strings.TrimSuffix(e.Name(), copySuffix)
		if isSHA256(sum) && !slices.ContainsFunc(list, func(a *adapter) bool { return a.added.SHA256 == sum }) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	_ = statefile.Sweep(dir, h.now())
}
