package app

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/service-dev/service/internal/rendezvous"
)

// maxLogSize is the size in bytes above which the log is rotated; one old log is kept.
const maxLogSize = 5 << 20

// openLog opens log/serviced.log and returns a logger that writes JSON there and text to also, which may be nil. The
// closer closes the file.
func openLog(p rendezvous.Paths, level slog.Leveler, also io.Writer) (*slog.Logger, io.Closer, error) {
	f := &logFile{path: filepath.Join(p.Dir, rendezvous.LogDir, rendezvous.LogName)}
	if err := f.open(); err != nil {
		return nil, nil, fmt.Errorf("open the log: %w", err)
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: redact}
	handler := slog.Handler(slog.NewJSONHandler(f, opts))
	if also != nil {
		handler = slog.NewMultiHandler(handler, slog.NewTextHandler(also, opts))
	}
	return slog.New(handler), f, nil
}

// logFile is a log that can be rotated while it is open, because a managed daemon may run for months.
type logFile struct {
	path string
	mu   sync.Mutex
	file *os.File // nil while it cannot be opened, and after Close
	done bool
}

func (l *logFile) open() (err error) {
	l.file, err = os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return err
}

func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return 0, os.ErrClosed
	}
	if l.file != nil {
		if info, err := l.file.Stat(); err == nil && info.Size() > maxLogSize {
			l.rotate()
		}
	}
	if l.file == nil {
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	return l.file.Write(line)
}

// rotate starts a new log. If the old log cannot be renamed, it is truncated, so that it cannot grow without bound.
func (l *logFile) rotate() {
	_ = l.file.Close() // Windows cannot rename an open file
	l.file = nil
	if os.Rename(l.path, l.path+".1") != nil {
		_ = os.Truncate(l.path, 0)
	}
}

func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = true
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// redact is a last safeguard against logged secrets: it removes the values of attributes with secret keys.
func redact(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case "authToken", "token", "bearer", "deviceCode", "userCode", "appSecret", "secret", "password", "authorization":
		return slog.String(a.Key, "[secret]")
	}
	return a
}
