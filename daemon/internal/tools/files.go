package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/session"
	contract "github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/problem"
)

// fileKind is a file type, recognised by a file's first bytes.
type fileKind struct {
	name  string
	magic func([]byte) bool
}

var (
	pictures = []fileKind{
		{"PNG", func(b []byte) bool { return bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")) }},
		{"JPEG", func(b []byte) bool { return bytes.HasPrefix(b, []byte("\xff\xd8\xff")) }},
	}
	sounds = []fileKind{{"WAV", session.IsWAV}, {"WebVTT", session.IsWebVTT}}
)

// pathOf returns an argument as an absolute path. A relative path is resolved against the caller's working directory.
func pathOf(who caller.Caller, argument, path string) (string, error) {
	switch {
	case strings.ContainsRune(path, 0):
		return "", invalid(fmt.Sprintf("argument %q is not a path", argument), "Pass the path of a file.")
	case filepath.IsAbs(path):
		return filepath.Clean(path), nil
	case !filepath.IsAbs(who.Cwd):
		return "", invalid(fmt.Sprintf("argument %q is relative, and the working directory is not known", argument),
			"Pass an absolute path.")
	}
	return filepath.Join(who.Cwd, path), nil
}

// listDir returns an argument's path and the entries of that directory, or none if the directory does not exist.
func listDir(
	ctx context.Context, who caller.Caller, files clientio.Files, argument, path string,
) (dir string, entries []contract.Entry, err error) {
	dir, err = pathOf(who, argument, path)
	if err != nil {
		return "", nil, err
	}
	entries, err = files.List(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return dir, nil, nil
	}
	if err != nil {
		return "", nil, fileError(problem.CodeFileUnwritable, err, "Pass a readable and writable folder.")
	}
	return dir, entries, nil
}

// readFile reads a regular file of at most limit bytes. Its content must match one of kinds, whatever its name.
func readFile(ctx context.Context, who caller.Caller, argument, path string, limit int64,
	kinds []fileKind) ([]byte, error) {
	full, err := pathOf(who, argument, path)
	if err != nil {
		return nil, err
	}
	data, err := clientio.FilesOf(who).Read(ctx, full, limit)
	if err == nil && len(kinds) > 0 && !slices.ContainsFunc(kinds, func(k fileKind) bool { return k.magic(data) }) {
		err = errors.New("read " + full + ": its content is not " + kindNames(kinds))
	}
	if err != nil {
		return nil, fileError(problem.CodeFileUnreadable, err,
			fmt.Sprintf("Pass in %s the path of a %s file of at most %d bytes.",
				argument, kindNames(kinds), limit))
	}
	return data, nil
}

// fileContent is a file in the answer to a client that cannot write files. Either Text or Base64 is set.
type fileContent struct {
	Path   string `json:"path"`
	Text   string `json:"text,omitempty"`
	Base64 []byte `json:"base64,omitempty"`
}

// writable returns the client's files. If the client cannot write files, writable also returns a collector, whose files
// the answer contains.
func writable(who caller.Caller) (clientio.Files, *clientio.Collector) {
	if files := clientio.FilesOf(who); files.Available() {
		return files, nil
	}
	collector := &clientio.Collector{}
	return clientio.FilesOf(caller.Caller{IO: collector}), collector
}

// contentsOf returns the files of a collector, which may be nil.
func contentsOf(collector *clientio.Collector) []fileContent {
	if collector == nil {
		return nil
	}
	var contents []fileContent
	for _, f := range collector.Files() {
		content := fileContent{Path: f.Path, Base64: f.Data}
		if f.IsText() {
			content = fileContent{Path: f.Path, Text: string(f.Data)}
		}
		contents = append(contents, content)
	}
	return contents
}

// notWritten ends the summary of an answer that contains files.
const notWritten = " This client cannot write files: write those in contents yourself."

// fileError converts an error of the client's files into an error for the agent.
func fileError(code string, err error, hint string) error {
	if clientio.IsUnavailable(err) {
		return &problem.Error{Code: problem.CodeClientFilesUnavailable, Message: err.Error(),
			FixHint: "Connect through service-mcp, or use `servicectl tool call`: they read and write files for their caller."}
	}
	return &problem.Error{Code: code, Message: err.Error(), FixHint: hint}
}

func kindNames(kinds []fileKind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return strings.Join(names, " or ")
}
