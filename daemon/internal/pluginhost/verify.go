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
	"runtime"
	"strings"

	"github.com/hashicorp/go-plugin"
)

// Manifest is the file beside the binaries that holds the checksums of the adapters that ship (design D29): lines of
// a SHA-256 in hexadecimal, two spaces and a file name.
const Manifest = "plugins.sha256"

// maxManifestLines bounds the manifest; a handful is normal.
const maxManifestLines = 256

// refusal is the reason why a file must not run. A person has to act before a new try can help.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// verify checks that path is a regular file lying in dir itself, and that its content is what the manifest says. It
// reads the manifest anew each time, so that an upgrade in place needs no restart.
func verify(dir, path string) error {
	if err := inside(dir, path); err != nil {
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
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
		return refuse("%s can be written by every user: chmod o-w it", path)
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
