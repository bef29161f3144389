package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/service-dev/service/internal/loopback"
)

// These files of an embedded backend are in the same directory as its database.
const (
	keyFile  = "hmac.key"
	sealFile = "credentials.key"
	idFile   = "instance"
	portFile = "port"
)

// kept holds the data that an embedded backend keeps across restarts.
type kept struct {
	key  []byte
	seal string // encrypts credentials
	id   string
	port int // 0 if none is saved
}

func openData(dir string) (kept, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return kept{}, fmt.Errorf("create the backend's directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { // others may have had access to an existing directory
		return kept{}, fmt.Errorf("restrict access to the backend's directory: %w", err)
	}
	keyText, err := readOrMake(dir, keyFile, 32)
	if err != nil {
		return kept{}, err
	}
	key, err := hex.DecodeString(keyText)
	if err != nil || len(key) < 32 {
		return kept{}, fmt.Errorf("%s contains no key: restore it, because otherwise every link and session of this "+
			"directory is lost", filepath.Join(dir, keyFile))
	}
	seal, err := readOrMake(dir, sealFile, 32)
	if err != nil {
		return kept{}, err
	}
	id, err := readOrMake(dir, idFile, 8)
	if err != nil {
		return kept{}, err
	}
	return kept{key: key, seal: seal, id: id, port: loopback.ReadPort(filepath.Join(dir, portFile))}, nil
}

// readOrMake reads a file, or creates it with n random bytes in hexadecimal. If two processes create it at the same
// time, both use the same content.
func readOrMake(dir, name string, n int) (string, error) {
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		random := make([]byte, n)
		rand.Read(random)
		if err := makeOnce(dir, name, hex.EncodeToString(random)); err != nil {
			return "", err
		}
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return "", fmt.Errorf("read the backend's %s: %w", name, err)
	}
	return strings.TrimSpace(string(data)), nil
}

// makeOnce creates a file with its complete content, unless the file exists.
func makeOnce(dir, name, content string) error {
	temp, err := writeTemp(dir, name, content)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := os.Link(temp, filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write the backend's %s: %w", name, err)
	}
	return nil
}

func writeKept(dir, name, content string) error {
	temp, err := writeTemp(dir, name, content)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
		os.Remove(temp)
		return fmt.Errorf("write the backend's %s: %w", name, err)
	}
	return nil
}

// writeTemp writes a synced file with mode 0600 into the directory of its final path.
func writeTemp(dir, name, content string) (string, error) {
	f, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return "", fmt.Errorf("write the backend's %s: %w", name, err)
	}
	_, err = f.WriteString(content + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		os.Remove(f.Name())
		return "", fmt.Errorf("write the backend's %s: %w", name, err)
	}
	return f.Name(), nil
}

// siteHost returns the host name of an instance's pages. Each instance has its own name, because browsers send cookies
// to every port of a host: other servers on localhost must not receive the cookies. The name never changes, because
// passkeys depend on it.
func siteHost(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "service-" + hex.EncodeToString(sum[:siteHostBytes]) + ".localhost"
}

// siteHostBytes is the number of hash bytes in an instance's host name, enough to distinguish the instances on one
// machine.
const siteHostBytes = 4
