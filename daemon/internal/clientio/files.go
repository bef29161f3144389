package clientio

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/problem"
)

// Error reports an operation that the client's process did not execute. Depending on its code, it matches
// fs.ErrNotExist or fs.ErrExist.
type Error struct {
	Op, Path string
	Code     string // problem.CodeClientFilesUnavailable, or a code of internal/clientio
	Message  string
}

func (e *Error) Error() string {
	if e.Code == problem.CodeClientFilesUnavailable {
		return e.Message
	}
	return fmt.Sprintf("%s %s: %s", e.Op, e.Path, e.Message)
}

// Is implements errors.Is for fs.ErrNotExist and fs.ErrExist.
func (e *Error) Is(target error) bool {
	return target == fs.ErrNotExist && e.Code == clientio.CodeNotExist || target == fs.ErrExist &&
		e.Code == clientio.CodeExists
}

// IsUnavailable reports whether err means that the client does not execute operations.
func IsUnavailable(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == problem.CodeClientFilesUnavailable
}

// Files provides access to a client's files through the client's process. The zero value is for a client that executes
// no operations.
type Files struct {
	io   caller.IO
	root string
}

// FilesOf returns the files of a caller, addressed by absolute paths.
func FilesOf(who caller.Caller) Files { return Files{io: who.IO} }

// In returns the files below the directory root, which is absolute. Paths are relative to root and use slashes. They
// cannot leave root, and symbolic links are not followed.
func (f Files) In(root string) Files { return Files{io: f.io, root: root} }

// Available reports whether the client's process executes file operations.
func (f Files) Available() bool { return f.io != nil }

// Read reads a regular file of at most limit bytes.
func (f Files) Read(ctx context.Context, path string, limit int64) ([]byte, error) {
	answer, err := f.do(ctx, clientio.Request{Op: clientio.Read, Path: clientio.Path(path), Limit: limit})
	if err == nil && int64(len(answer.Data)) > limit {
		err = f.broken(clientio.Read, path)
	}
	return answer.Data, err
}

// Stat describes a file.
func (f Files) Stat(ctx context.Context, path string) (clientio.Info, error) {
	answer, err := f.do(ctx, clientio.Request{Op: clientio.Stat, Path: clientio.Path(path)})
	if err == nil && answer.Info == nil {
		err = f.broken(clientio.Stat, path)
	}
	if err != nil {
		return clientio.Info{}, err
	}
	return *answer.Info, nil
}

// List returns at most clientio.MaxEntries entries of a directory, ordered by name. List rejects a response with a name
// that is not a single path element, because the daemon joins names to a directory that it must not leave.
func (f Files) List(ctx context.Context, path string) ([]clientio.Entry, error) {
	answer, err := f.do(ctx, clientio.Request{Op: clientio.List, Path: clientio.Path(path)})
	if err != nil {
		return nil, err
	}
	if len(answer.Entries) > clientio.MaxEntries ||
		slices.ContainsFunc(answer.Entries, func(e clientio.Entry) bool { return !isElement(string(e.Name)) }) {
		return nil, f.broken(clientio.List, path)
	}
	return answer.Entries, nil
}

func isElement(name string) bool {
	return name != "." && filepath.IsLocal(name) && name == filepath.Base(name) && !strings.ContainsRune(name, 0)
}

// Find reads the file called name in dir or in the nearest parent directory that contains one. It returns
// fs.ErrNotExist if there is none.
func (f Files) Find(ctx context.Context, dir, name string, limit int64) (path string, data []byte, err error) {
	answer, err := f.do(ctx, clientio.Request{Op: clientio.Find, Path: clientio.Path(dir), Name: clientio.Path(name),
		Limit: limit})
	return string(answer.Path), answer.Data, err
}

// Create writes a new file and creates missing directories. It returns fs.ErrExist if the file
// exists.
func (f Files) Create(ctx context.Context, path string, data []byte, mode, dirMode fs.FileMode) error {
	return f.write(ctx, path, data, mode, dirMode, false)
}

// Replace writes a file atomically, replacing an existing one.
func (f Files) Replace(ctx context.Context, path string, data []byte, mode, dirMode fs.FileMode) error {
	return f.write(ctx, path, data, mode, dirMode, true)
}

func (f Files) write(ctx context.Context, path string, data []byte, mode, dirMode fs.FileMode, replace bool) error {
	_, err := f.do(ctx, clientio.Request{
		Op: clientio.Write, Path: clientio.Path(path), Data: data, Mode: uint32(mode.Perm()), DirMode: uint32(dirMode.Perm()),
		Replace: replace,
	})
	return err
}

// MakeDir creates a directory and its missing parents.
func (f Files) MakeDir(ctx context.Context, path string, mode fs.FileMode) error {
	_, err := f.do(ctx, clientio.Request{Op: clientio.MakeDir, Path: clientio.Path(path), DirMode: uint32(mode.Perm())})
	return err
}

// Remove removes a regular file if the SHA-256 of its content is sum.
func (f Files) Remove(ctx context.Context, path string, sum [sha256.Size]byte) error {
	_, err := f.do(ctx, clientio.Request{Op: clientio.Remove, Path: clientio.Path(path), Data: sum[:]})
	return err
}

func (f Files) do(ctx context.Context, r clientio.Request) (clientio.Response, error) {
	if f.io == nil {
		return clientio.Response{}, errNoClient
	}
	if len(r.Data) > clientio.MaxData {
		return clientio.Response{}, &Error{Op: r.Op, Path: string(r.Path), Code: clientio.CodeTooLarge,
			Message: "the data is larger than 32 MB"}
	}
	r.Root = clientio.Path(f.root)
	answer, err := f.io.Do(ctx, r)
	if err != nil {
		return clientio.Response{}, err
	}
	if answer.Code != "" {
		return answer, &Error{Op: r.Op, Path: string(r.Path), Code: answer.Code, Message: plain(answer.Message)}
	}
	return answer, nil
}

func (f Files) broken(op, path string) error {
	return &Error{Op: op, Path: path, Code: clientio.CodeFailed,
		Message: "the client's response does not match the request"}
}

var errNoClient = &Error{Code: problem.CodeClientFilesUnavailable,
	Message: "this client does not support operations on files"}

// Open asks the client's process to open a page in the user's browser.
func Open(ctx context.Context, who caller.Caller, url string) (opened bool, reason string) {
	if who.Env["SERVICE_NO_AUTO_OPEN"] == "1" {
		return false, clientio.ReasonDisabled // the client cannot open pages
	}
	if who.IO == nil {
		return false, clientio.ReasonClient
	}
	answer, err := who.IO.Do(ctx, clientio.Request{Op: clientio.Open, URL: url})
	if err != nil || answer.Code != "" {
		return false, clientio.ReasonClient
	}
	return answer.Opened, answer.Reason
}
