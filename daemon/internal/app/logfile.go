package app

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/service-dev/service/proto/rendezvous"
)

// maxLog is the size in bytes above which the log is set aside at the next start; one old log is kept.
const maxLog = 5 << 20

// openLog opens log/serviced.log and returns a JSON logger that writes there and, as text, to also (nil for none).
// The closer is the file.
func openLog(p rendezvous.Paths, level slog.Leveler, also io.Writer) (*slog.Logger, io.Closer, error) {
	path := filepath.Join(p.Dir, rendezvous.LogDir, rendezvous.LogName)
	if info, err := os.Lstat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, nil, fmt.Errorf("setting the old log aside: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the log: %w", err)
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: redact}
	handler := slog.Handler(slog.NewJSONHandler(f, opts))
	if also != nil {
		handler = slog.NewMultiHandler(handler, slog.NewTextHandler(also, opts))
	}
	return slog.New(handler), f, nil
}

// redact is the last fence: whatever a part logs under such a name is not written.
func redact(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case "authToken", "token", "bearer", "deviceCode", "userCode", "appSecret", "secret", "password", "authorization":
		return slog.String(a.Key, "[secret]")
	}
	return a
}
