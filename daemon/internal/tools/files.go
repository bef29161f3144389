package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
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
func readFile(ctx context.Context, who caller.Caller, argument, path string, limit int64, kinds []fileKind) ([]byte, error) {
	full, err := pathOf(who, argument, path)
	if err != nil {
		return nil, err
	}
	data, err := clientio.FilesOf(who).Read(ctx, full, limit)
	if err == nil && len(kinds) > 0 && !slices.ContainsFunc(kinds, func(k fileKind) bool { return k.magic(data) }) {
		err = errors.New("read " + full + ": its content is not " + kindNames(kinds))
	}
	if err != nil {
		return nil, fileError(CodeFileUnreadable, err, fmt.Sprintf("pass in %s the path of a %s file of at most %d bytes", argument, kindNames(kinds), limit))
	}
	return data, nil
}

// fileContent is a file that the client's process does not write: the answer holds it instead. One of Text and Base64 is
// set.
type fileContent struct {
	Path   string `json:"path"`
	Text   string `json:"text,omitempty"`
	Base64 []byte `json:"base64,omitempty"`
}

const contentsSchema = `{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"},"base64":{"type":"string"}}},"description":"Only for a client that writes no files: what it has to write."}`

// writable are the files that a call writes to: the client's, or, for a client that writes none, a collector whose
// content goes into the answer.
func writable(who caller.Caller) (clientio.Files, *clientio.Collector) {
	if files := clientio.FilesOf(who); files.Available() {
		return files, nil
	}
	collector := &clientio.Collector{}
	return clientio.FilesOf(caller.Caller{IO: collector}), collector
}

// contentsOf are the files of a collector; none without one.
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

// notWritten tells the agent what to do with an answer that holds files.
const notWritten = " This client writes no files: write those of contents yourself."

// fileError puts an error of the client's files into the catalogue's words.
func fileError(code string, err error, hint string) error {
	if clientio.IsUnavailable(err) {
		return &Error{Code: clientio.CodeUnavailable, Message: err.Error(), FixHint: "connect through service-mcp, or use `servicectl tool call`: they read and write files for their caller"}
	}
	return &Error{Code: code, Message: err.Error(), FixHint: hint}
}

func kindNames(kinds []fileKind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return strings.Join(names, " or ")
}

func join(words []string) string { return strings.Join(words, ", ") }
