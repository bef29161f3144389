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

// Manifest is the file beside the binaries that holds the checksums of the adapters that ship: lines of
// a SHA-256 in hexadecimal, two spaces and a file name.
const Manifest = "plugins.sha256"

// maxManifestLines bounds the manifest; a handful is normal.
const maxManifestLines = 256

// refusal is the reason why a file must not run, and what a person does before a new try can help.
type refusal struct{ reason, fixHint string }

func (r *refusal) Error() string { return r.reason }

// reinstall is what helps where nothing else is said.
const reinstall = "Install the service again so that its binaries and plugins.sha256 belong together, then try again."

func refuse(format string, args ...any) error { return refuseWith(reinstall, format, args...) }

// refuseWith is refuse with a step of its own for the person.
func refuseWith(fixHint, format string, args ...any) error {
	return &refusal{fmt.Sprintf(format, args...), fixHint}
}

// then is the fix hint of a command.
func then(command string) string { return "Run `" + command + "`, then try again." }

// FixHint is what a person does about a problem that Check found.
func FixHint(err error) string {
	var r *refusal
	if errors.As(err, &r) {
		return r.fixHint
	}
	return reinstall
}

// verify checks that path is a regular file lying in dir itself, that nobody but this user and root could replace it,
// and that its content is what the manifest says. It reads the manifest anew each time, so that an upgrade in place
// needs no restart.
func verify(dir, path string) error {
	if err := inside(dir, path); err != nil {
		return err
	}
	if err := checkOwners(dir, path); err != nil {
		return err
	}
	sum, err := wanted(filepath.Join(dir, Manifest), filepath.Base(path))
	if err != nil {
		return err
	}
	ok, err := (&plugin.SecureConfig{Checksum: sum, Hash: sha256.New()}).Check(path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if !ok {
		return refuse("%s is not the file that %s names: its checksum differs", path, Manifest)
	}
	return nil
}

// inside refuses what is missing, what is not a regular file and what a link leads out of dir.
func inside(dir, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return refuse("%s is missing", path)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return refuse("%s leads nowhere", path)
	}
	realDir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("reading %s: %w", dir, err)
	}
	if filepath.Dir(real) != realDir {
		return refuse("%s is a link out of %s", path, dir)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		info, err = os.Stat(path)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
	if !info.Mode().IsRegular() {
		return refuse("%s is not a regular file", path)
	}
	return nil
}

// wanted reads the checksum of name from the manifest.
func wanted(manifest, name string) ([]byte, error) {
	f, err := os.Open(manifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse("%s is missing: adapters without a checksum are not run", manifest)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", manifest, err)
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
			return nil, refuse("%s holds no SHA-256 for %s", manifest, name)
		}
		return b, nil
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", manifest, err)
	}
	return nil, refuse("%s does not name %s", manifest, name)
}
