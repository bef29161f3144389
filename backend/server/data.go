package server

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Files of an embedded backend beside its database.
const (
	keyFile  = "hmac.key"
	sealFile = "credentials.key"
	idFile   = "instance"
	portFile = "port"
)

// kept is the data that an embedded backend keeps between starts.
type kept struct {
	key  []byte
	seal string // encrypts credentials
	id   string
	port int // 0 if there is none yet
}

func openData(dir string) (kept, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return kept{}, fmt.Errorf("make the backend's directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { // it may have existed with access for others
		return kept{}, fmt.Errorf("closing the backend's directory to others: %w", err)
	}
	keyText, err := readOrMake(dir, keyFile, 32)
	if err != nil {
		return kept{}, err
	}
	key, err := hex.DecodeString(keyText)
	if err != nil || len(key) < 32 {
		return kept{}, fmt.Errorf("reading %s: not a key; without the right one every link and session of this directory "+
			"is lost", filepath.Join(dir, keyFile))
	}
	seal, err := readOrMake(dir, sealFile, 32)
	if err != nil {
		return kept{}, err
	}
	id, err := readOrMake(dir, idFile, 8)
	if err != nil {
		return kept{}, err
	}
	port := 0
	if data, err := os.ReadFile(filepath.Join(dir, portFile)); err == nil {
		port, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		if port < 1024 || port > 65535 {
			port = 0
		}
	}
	return kept{key: key, seal: seal, id: id, port: port}, nil
}

// readOrMake reads a file, or creates it with n random bytes in hexadecimal. If two processes create it at once, one
// wins.
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
		return "", fmt.Errorf("reading the backend's %s: %w", name, err)
	}
	return strings.TrimSpace(string(data)), nil
}

// makeOnce puts a complete file in place unless it exists.
func makeOnce(dir, name, content string) error {
	temp, err := writeTemp(dir, name, content)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := os.Link(temp, filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing the backend's %s: %w", name, err)
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
		return fmt.Errorf("writing the backend's %s: %w", name, err)
	}
	return nil
}

// writeTemp writes a synced file of mode 0600 beside its final path.
func writeTemp(dir, name, content string) (string, error) {
	f, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return "", fmt.Errorf("writing the backend's %s: %w", name, err)
	}
	_, err = f.WriteString(content + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		os.Remove(f.Name())
		return "", fmt.Errorf("writing the backend's %s: %w", name, err)
	}
	return f.Name(), nil
}
