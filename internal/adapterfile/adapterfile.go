// Package adapterfile identifies the program of a transport adapter that the user adds to the daemon. It also defines
// how the user's own process proves that the user approved the program.
package adapterfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ApprovalName is the file in the state directory that approves one program. A client writes it before asking the
// daemon to add the program, and the daemon deletes it. A process that may connect to the daemon but not write to the
// state directory, such as a sandboxed agent, thus cannot make the daemon run a program.
const ApprovalName = "adapter.approved"

// MaxApproval is the maximum size of an approval, in bytes.
const MaxApproval = 8 << 10

// maxFile is the maximum size of a program, in bytes.
const maxFile = 512 << 20

// File identifies a program file by its path and content.
type File struct {
	// Path is absolute and contains no symbolic links.
	Path string
	// SHA256 is in lower-case hexadecimal.
	SHA256 string
	// Owner is the name of the file's owner, or the owner's number if the name is unknown.
	Owner string
}

// Inspect reads the file at path, which may be relative, and resolves symbolic links in path.
func Inspect(path string) (File, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return File{}, err
	}
	var f File
	if f.Path, err = filepath.EvalSymlinks(absolute); err != nil {
		return File{}, err
	}
	info, err := os.Lstat(f.Path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", f.Path)
	}
	if err == nil {
		f.SHA256, err = Copy(f.Path, nil)
	}
	if err == nil {
		f.Owner, err = ownerOf(f.Path, info)
	}
	return f, err
}

// Copy writes the regular file at path to w, or only reads it if w is nil. It returns the checksum of the bytes that it
// read. It does not block on a pipe and reads at most 512 MB.
func Copy(path string, w io.Writer) (sha256Hex string, err error) {
	program, err := openProgram(path)
	if err != nil {
		return "", err
	}
	defer program.Close()
	if info, err := program.Stat(); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	sum := sha256.New()
	to := io.Writer(sum)
	if w != nil {
		to = io.MultiWriter(sum, w)
	}
	n, err := io.Copy(to, io.LimitReader(program, maxFile+1))
	if err == nil && n > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Approval is the content of the file that approves f.
func (f File) Approval() []byte { return []byte(f.SHA256 + "  " + f.Path + "\n") }

// Approve writes the approval of f to the state directory, which must exist. The returned function deletes the
// approval. Call it after the daemon has responded.
func Approve(stateDir string, f File) (withdraw func(), err error) {
	temp, err := os.CreateTemp(stateDir, "."+ApprovalName+".tmp-*") // mode 0600
	if err != nil {
		return nil, err
	}
	_, err = temp.Write(f.Approval())
	if err = errors.Join(err, temp.Close()); err == nil {
		path := filepath.Join(stateDir, ApprovalName)
		if err = os.Rename(temp.Name(), path); err == nil {
			return func() { _ = os.Remove(path) }, nil // a daemon that added the program has already deleted the file
		}
	}
	_ = os.Remove(temp.Name())
	return nil, err
}
