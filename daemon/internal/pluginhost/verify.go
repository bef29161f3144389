package pluginhost

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-plugin"
)

// Manifest is the name of the file that contains the checksums of the shipped adapters. It is in the directory of the
// binaries. Each line is a SHA-256 in hexadecimal, two spaces and a file name.
const Manifest = "plugins.sha256"

// maxManifestLines is the maximum number of lines of the manifest.
const maxManifestLines = 256

// refusal is the reason why a file must not run, with the user's next step.
type refusal struct {
	reason, fixHint string
	// mismatch is set if the files are from different versions, for example during an upgrade that replaces them one
	// after the other.
	mismatch bool
	// upgrading is set if the files changed recently. An upgrade is then probably being installed, and a retry helps.
	upgrading bool
}

func (r *refusal) Error() string { return r.reason }

// reinstall is the default fix hint of a refusal.
const reinstall = "Install the service again so that its binaries match plugins.sha256, then try again."

func refuse(format string, args ...any) error { return refuseWith(reinstall, format, args...) }

// refuseWith is like refuse but with a specific fix hint.
func refuseWith(fixHint, format string, args ...any) error {
	return &refusal{reason: fmt.Sprintf(format, args...), fixHint: fixHint}
}

// refuseMismatch is like refuse, but for files from different versions.
func refuseMismatch(format string, args ...any) error {
	return &refusal{reason: fmt.Sprintf(format, args...), fixHint: reinstall, mismatch: true}
}

// runHint returns the hint to run a command.
func runHint(command string) string { return "Run `" + command + "`, then try again." }

// FixHint returns the user's next step after an error of Check.
func FixHint(err error) string {
	var r *refusal
	if errors.As(err, &r) {
		return r.fixHint
	}
	return reinstall
}

// verify checks the adapter's file before each start, and returns its path.
func (a *adapter) verify() (path string, err error) {
	path = a.file()
	if a.added != nil {
		return path, verifyAdded(*a.added)
	}
	return path, a.explainMismatch(path, verify(a.host.opts.Dir, path))
}

// file returns the path of the adapter's file. For a shipped adapter, an upgrade may change the path while the daemon
// runs.
func (a *adapter) file() string {
	if a.added != nil {
		return a.added.Path
	}
	return shippedFile(a.host.opts.Dir, a.name)
}

// verify checks that path is a regular file in dir itself, that only this user and root could replace it, and that the
// manifest contains its checksum. It reads the manifest each time, so that no restart is needed after an upgrade.
func verify(dir, path string) error {
	if err := checkInside(dir, path); err != nil {
		return err
	}
	if err := checkOwners(dir, path); err != nil {
		return err
	}
	sum, err := manifestChecksum(filepath.Join(dir, Manifest), filepath.Base(path))
	if err != nil {
		return err
	}
	ok, err := (&plugin.SecureConfig{Checksum: sum, Hash: sha256.New()}).Check(path)
	if err == nil && !ok {
		err = refuseMismatch("the checksum of %s is not the one in %s", path, Manifest)
	}
	return err
}

// checkInside refuses a file that is missing or not regular, or that a symbolic link places outside dir.
func checkInside(dir, path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return refuseMismatch("%s is missing", path)
	} else if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return refuse("%s is a broken link", path)
	}
	realDir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if filepath.Dir(real) != realDir {
		return refuse("%s is a link out of %s", path, dir)
	}
	info, err := os.Stat(real)
	if err == nil && !info.Mode().IsRegular() {
		err = refuse("%s is not a regular file", path)
	}
	return err
}

// manifestChecksum reads the checksum of name from the manifest.
func manifestChecksum(manifest, name string) ([]byte, error) {
	f, err := os.Open(manifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuseMismatch("%s is missing: adapters without a checksum are not run", manifest)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 0; lines.Scan() && n < maxManifestLines; n++ {
		sum, file, ok := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if !ok || strings.TrimLeft(file, " *") != name {
			continue
		}
		b, err := hex.DecodeString(sum)
		if err != nil || len(b) != sha256.Size {
			return nil, refuseMismatch("%s does not contain a SHA-256 for %s", manifest, name)
		}
		return b, nil
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", manifest, err)
	}
	return nil, refuseMismatch("%s does not list %s", manifest, name)
}
