package local

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/fileowner"
)

// fileSystem resolves the paths of a request, either in the whole file system or in an os.Root that no path can
// leave.
type fileSystem interface {
	Stat(path string) (fs.FileInfo, error)
	Lstat(path string) (fs.FileInfo, error)
	OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error)
	MkdirAll(path string, mode fs.FileMode) error
	Rename(from, to string) error
	Remove(path string) error
}

// wholeSystem is the file system without a root. It follows symbolic links.
type wholeSystem struct{}

func (wholeSystem) Stat(path string) (fs.FileInfo, error)        { return os.Stat(path) }
func (wholeSystem) Lstat(path string) (fs.FileInfo, error)       { return os.Lstat(path) }
func (wholeSystem) MkdirAll(path string, mode fs.FileMode) error { return os.MkdirAll(path, mode) }
func (wholeSystem) Rename(from, to string) error                 { return os.Rename(from, to) }
func (wholeSystem) Remove(path string) error                     { return os.Remove(path) }
func (wholeSystem) OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, mode)
}

// rooted is an os.Root that does not follow a symbolic link at the end of a path.
type rooted struct{ *os.Root }

func (r rooted) Stat(path string) (fs.FileInfo, error) { return r.Lstat(path) }

// errRefused is returned for a request that this process does not execute.
var errRefused = errors.New("this process does not execute such requests")

// onFiles executes one file operation.
func onFiles(r clientio.Request, answer *clientio.Response) error {
	if err := check(r); err != nil {
		return err
	}
	if r.Root == "" {
		return operate(wholeSystem{}, r, answer)
	}
	root, err := os.OpenRoot(string(r.Root))
	if err != nil {
		return err
	}
	defer root.Close()
	return operate(rooted{root}, r, answer)
}

// check refuses paths that violate the contract. The system checks permissions.
func check(r clientio.Request) error {
	if strings.ContainsRune(string(r.Path+r.Root+r.Name), 0) || len(r.Data) > clientio.MaxData {
		return errRefused
	}
	if r.Root == "" {
		if !filepath.IsAbs(string(r.Path)) {
			return errRefused
		}
		return nil
	}
	if !filepath.IsAbs(string(r.Root)) || !filepath.IsLocal(filepath.FromSlash(string(r.Path))) {
		return errRefused
	}
	return nil
}

func operate(files fileSystem, r clientio.Request, answer *clientio.Response) (err error) {
	path := string(r.Path)
	switch r.Op {
	case clientio.Stat:
		answer.Info, err = stat(files, path)
	case clientio.Read:
		answer.Data, err = read(files, path, r.Limit)
	case clientio.List:
		answer.Entries, err = list(files, path)
	case clientio.Find:
		path, answer.Data, err = find(files, path, string(r.Name), r.Limit)
		answer.Path = clientio.Path(path)
	case clientio.Write:
		err = write(files, path, r)
	case clientio.MakeDir:
		err = files.MkdirAll(path, fs.FileMode(r.DirMode).Perm())
	case clientio.Remove:
		err = remove(files, path, r.Data)
	default:
		return errRefused
	}
	return err
}

// remove removes a regular file if sum is the SHA-256 of its content.
func remove(files fileSystem, path string, sum []byte) error {
	info, err := files.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return codedError{clientio.CodeNotRegular, "not a regular file"}
	}
	data, err := read(files, path, clientio.MaxData)
	if err != nil {
		return err
	}
	if now := sha256.Sum256(data); !bytes.Equal(now[:], sum) {
		return codedError{clientio.CodeFailed, "its content has changed"}
	}
	return files.Remove(path)
}

func stat(files fileSystem, path string) (*clientio.Info, error) {
	info, err := files.Stat(path)
	if err != nil {
		return nil, err
	}
	return &clientio.Info{
		Kind: kindOf(info.Mode()), Private: isPrivate(info.Mode()),
		Size: info.Size(), ModTime: info.ModTime().UnixNano(),
	}, nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return clientio.KindFile
	case mode.IsDir():
		return clientio.KindDir
	}
	return clientio.KindOther
}

// codedError is an error with a code of the contract.
type codedError struct {
	code, message string
}

func (e codedError) Error() string { return e.message }

// read reads a regular file. It checks the file again after opening it, because reading a pipe or a device might never
// end.
func read(files fileSystem, path string, limit int64) ([]byte, error) {
	data, _, err := readOpened(files, path, limit)
	return data, err
}

// readOpened is like read, but also returns opened, which describes the file that was read even if path has been
// replaced since.
func readOpened(files fileSystem, path string, limit int64) (data []byte, opened fs.FileInfo, err error) {
	if limit <= 0 || limit > clientio.MaxData {
		return nil, nil, errRefused
	}
	info, err := files.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, codedError{clientio.CodeNotRegular, "not a regular file"}
	}
	f, err := files.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if opened, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	if !opened.Mode().IsRegular() {
		return nil, nil, codedError{clientio.CodeNotRegular, "not a regular file"}
	}
	data, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = codedError{clientio.CodeTooLarge, fmt.Sprintf("the file is %d bytes long, over the limit of %d",
			max(opened.Size(), limit+1), limit)}
	}
	return data, opened, err
}

func list(files fileSystem, path string) ([]clientio.Entry, error) {
	if info, err := files.Stat(path); err == nil && !info.IsDir() {
		return nil, codedError{clientio.CodeNotRegular, "not a folder"}
	}
	dir, err := files.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	found, err := dir.ReadDir(clientio.MaxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	entries := make([]clientio.Entry, len(found))
	for i, e := range found {
		entries[i] = clientio.Entry{Name: clientio.Path(e.Name()), Kind: kindOf(e.Type())}
	}
	slices.SortFunc(entries, func(a, b clientio.Entry) int { return cmp.Compare(a.Name, b.Name) })
	return entries, nil
}

// maxUpward is the maximum number of directories that find searches.
const maxUpward = 64

func find(files fileSystem, dir, name string, limit int64) (string, []byte, error) {
	if name == "" || name != filepath.Base(name) {
		return "", nil, errRefused
	}
	for range maxUpward {
		path := filepath.Join(dir, name)
		data, opened, err := readOpened(files, path, limit)
		if isPlanted(files, dir, path, opened) { // check after reading, to detect a link that was swapped
			err = fs.ErrPermission
		}
		if err == nil || !isSkipped(err) {
			return path, data, err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return "", nil, fs.ErrNotExist
}

// isPlanted reports whether path, in a world-writable directory such as /tmp, or the file opened there belongs to
// another user. If path is a symbolic link, isPlanted also checks the owner of the link. Such a file must not determine
// the project of all users who work below that directory. opened is nil if no file was opened.
func isPlanted(files fileSystem, dir, path string, opened fs.FileInfo) bool {
	folder, err := files.Stat(dir)
	if err != nil || folder.Mode().Perm()&0o002 == 0 {
		return false
	}
	info, err := files.Lstat(path) // checks the owner of a link, not of its target
	return err != nil || isForeign(info) || opened != nil && isForeign(opened)
}

// isSkipped reports whether find continues with the parent directory because the file is missing, unreadable or
// not regular.
func isSkipped(err error) bool {
	var coded codedError
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) ||
		errors.As(err, &coded) && coded.code == clientio.CodeNotRegular
}

// write replaces a file atomically: it writes and syncs a temporary file, and then renames it.
func write(files fileSystem, path string, r clientio.Request) error {
	dir := filepath.Dir(path)
	if err := files.MkdirAll(dir, fs.FileMode(r.DirMode).Perm()); err != nil && dir != "." {
		return err
	}
	info, err := files.Lstat(path) // a symbolic link could redirect the write
	switch {
	case err == nil && !r.Replace:
		return fs.ErrExist
	case err == nil && !info.Mode().IsRegular():
		return codedError{clientio.CodeNotRegular, "not a regular file"}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if !r.Replace {
		return writeInto(files, path, r, nil)
	}
	temporary := filepath.Join(dir, "."+filepath.Base(path)+"."+strings.ToLower(rand.Text()[:8])+".tmp")
	if err := writeInto(files, temporary, r, info); err != nil {
		return err
	}
	if err := files.Rename(temporary, path); err != nil {
		return errors.Join(err, files.Remove(temporary))
	}
	return nil
}

// writeInto creates a file and removes it again if writing fails. The file gets the owner of replaced, unless replaced
// is nil.
func writeInto(files fileSystem, path string, r clientio.Request, replaced fs.FileInfo) error {
	f, err := files.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(r.Mode).Perm())
	if err != nil {
		return err
	}
	_, err = f.Write(r.Data)
	if replaced != nil {
		err = errors.Join(err, fileowner.KeepOwner(f, replaced))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, files.Remove(path))
	}
	return nil
}

// codeOf returns the contract's code and message for an error. The message omits the path, because the daemon has it.
func codeOf(err error) (code, message string) {
	var coded codedError
	var path *fs.PathError
	message = err.Error()
	if errors.As(err, &path) {
		message = path.Err.Error()
	}
	switch {
	case errors.As(err, &coded):
		return coded.code, coded.message
	case errors.Is(err, errRefused):
		return clientio.CodeRefused, message
	case errors.Is(err, fs.ErrNotExist):
		return clientio.CodeNotExist, "it does not exist"
	case errors.Is(err, fs.ErrExist):
		return clientio.CodeExists, "it already exists"
	case errors.Is(err, fs.ErrPermission):
		return clientio.CodePermission, "permission denied"
	}
	return clientio.CodeFailed, message
}
