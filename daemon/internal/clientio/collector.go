package clientio

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"sync"
	"unicode/utf8"

	"github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/problem"
)

// Collector replaces a client whose process cannot write files. It collects written files for the response to the call,
// and cannot read files. It is safe for concurrent use.
type Collector struct {
	mu    sync.Mutex
	files []Collected
	size  int
}

// Collected is a file for the client to write.
type Collected struct {
	Path string
	Mode fs.FileMode
	Data []byte
}

// IsText reports whether the content can be shown without encoding it.
func (c Collected) IsText() bool { return utf8.Valid(c.Data) }

// maxCollected is the maximum total size of the files in a response, in bytes.
const maxCollected = 1 << 20

// Do implements caller.IO.
func (c *Collector) Do(_ context.Context, r clientio.Request) (clientio.Response, error) {
	switch r.Op {
	case clientio.Write:
		return clientio.Response{}, c.add(r)
	case clientio.MakeDir:
		return clientio.Response{}, nil
	case clientio.Open:
		return clientio.Response{Reason: clientio.ReasonClient}, nil
	}
	return clientio.Response{Code: clientio.CodeNotExist, Message: "it does not exist"}, nil
}

func (c *Collector) add(r clientio.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size += len(r.Data); c.size > maxCollected {
		return &Error{Code: problem.CodeClientFilesUnavailable,
			Message: fmt.Sprintf("this client cannot write files, and the answer cannot contain more than %d KB of them",
				maxCollected>>10)}
	}
	c.files = append(c.files, Collected{Path: filepath.ToSlash(path.Join(filepath.ToSlash(string(r.Root)),
		filepath.ToSlash(string(r.Path)))), Mode: fs.FileMode(r.Mode), Data: r.Data})
	return nil
}

// Files returns the collected files in the order they were written.
func (c *Collector) Files() []Collected {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files
}
