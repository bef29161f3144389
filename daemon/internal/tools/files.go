package tools

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/service-dev/service/daemon/internal/caller"
)

// Codes of refusals about files that the agent named.
const (
	CodeFileUnreadable = "file_unreadable"
	CodeFileExists     = "file_exists"
	CodeFileUnwritable = "file_unwritable"
)

// fileKind is a kind of file that is known by its first bytes.
type fileKind struct {
	name  string
	magic func([]byte) bool
}

var (
	pictures = []fileKind{
		{"PNG", func(b []byte) bool { return bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")) }},
		{"JPEG", func(b []byte) bool { return bytes.HasPrefix(b, []byte("\xff\xd8\xff")) }},
	}
	sounds = []fileKind{{"WAV", func(b []byte) bool {
		return len(b) > 12 && bytes.HasPrefix(b, []byte("RIFF")) && string(b[8:12]) == "WAVE"
	}}}
)

// pathOf makes an argument absolute: as it is, or below the caller's working directory.
func pathOf(who caller.Caller, argument, path string) (string, error) {
	switch {
	case strings.ContainsRune(path, 0):
		return "", &Error{Code: CodeInvalidArguments, Message: fmt.Sprintf("argument %q is not a path", argument), FixHint: "pass the path of a file"}
	case filepath.IsAbs(path):
		return filepath.Clean(path), nil
	case !filepath.IsAbs(who.Cwd):
		return "", &Error{Code: CodeInvalidArguments, Message: fmt.Sprintf("argument %q is relative, and the working directory is not known", argument), FixHint: "pass an absolute path"}
	}
	return filepath.Join(who.Cwd, path), nil
}

// readFile reads a regular file of at most limit bytes whose content is of one of the kinds; the path alone says nothing.
func readFile(who caller.Caller, argument, path string, limit int64, kinds []fileKind) ([]byte, error) {
	full, err := pathOf(who, argument, path)
	if err != nil {
		return nil, err
	}
	unreadable := func(why string) error {
		return &Error{Code: CodeFileUnreadable, Message: fmt.Sprintf("reading %s: %s", full, why), FixHint: fmt.Sprintf("pass in %s the path of a %s file of at most %d bytes", argument, kindNames(kinds), limit)}
	}
	info, err := os.Stat(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, unreadable("there is no such file")
	case err != nil:
		return nil, unreadable("it may not be read")
	case !info.Mode().IsRegular():
		return nil, unreadable("it is not a file")
	case info.Size() > limit:
		return nil, unreadable(fmt.Sprintf("it has %d bytes", info.Size()))
	}
	f, err := os.Open(full)
	if err != nil {
		return nil, unreadable("it may not be read")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil || int64(len(data)) > limit {
		return nil, unreadable("it cannot be read to its end within the limit")
	}
	for _, kind := range kinds {
		if kind.magic(data) {
			return data, nil
		}
	}
	if len(kinds) > 0 {
		return nil, unreadable("its content is not " + kindNames(kinds))
	}
	return data, nil
}

func kindNames(kinds []fileKind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return strings.Join(names, " or ")
}

// reason is an error of the file system without the path, which stands before it.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func join(words []string) string { return strings.Join(words, ", ") }
