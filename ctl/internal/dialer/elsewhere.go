package dialer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
)

// A daemon with a long state directory has its sockets in another directory, which depends on XDG_RUNTIME_DIR and on
// the spelling of the state directory's path. Its record, in the state directory itself, contains their paths for
// clients in other environments.

// elsewherePatience is how long to wait for a daemon that listens elsewhere to stop or to create its sockets.
const elsewherePatience = time.Second

// dialRecorded connects to the socket that the running daemon recorded instead of the given one. It returns
// ErrNotRunning if there is no such daemon.
func (d Daemon) dialRecorded(socket string) (Conn, error) {
	field := "controlSocket"
	if socket == d.Paths.MCP {
		field = "mcpSocket"
	}
	record := d.record()
	recorded, err := strconv.Unquote(record.field(field))
	if err != nil || recorded == socket || !filepath.IsAbs(recorded) || !d.Held() {
		return nil, ErrNotRunning
	}
	elsewhere := d
	elsewhere.Paths.Sockets = filepath.Dir(recorded)
	if err := elsewhere.checkDirs(); err != nil {
		return nil, err
	}
	conn, err := dial(recorded)
	if errors.Is(err, ErrNotRunning) {
		return nil, problem.New(problem.CodeDaemonElsewhere, fmt.Sprintf("the daemon (pid %d) that holds %s listens on %s, "+
			"which cannot be reached from here; this program would look for it on %s", record.pid(), d.Paths.Dir, recorded,
			socket), "Give this program the XDG_RUNTIME_DIR and SERVICE_CONFIG_DIR of the program that started the daemon, "+
			"or set SERVICE_CONFIG_DIR to a directory of its own.")
	}
	return conn, err
}

// dialPatiently is like Dial, but waits up to elsewherePatience for a daemon whose recorded socket cannot be reached.
func (d Daemon) dialPatiently(ctx context.Context, socket string) (Conn, error) {
	for late := time.Now().Add(elsewherePatience); ; {
		conn, err := d.Dial(socket)
		if problem.CodeOf(err) != problem.CodeDaemonElsewhere || time.Now().After(late) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// daemonRecord is the text of daemon.json, which the running daemon writes with one field per line. encoding/json is
// too expensive for service-mcp.
type daemonRecord string

// maxRecord is the maximum size of a record in bytes. A daemon writes less than half a kilobyte and two paths.
const maxRecord = 16 << 10

// record returns the record, or "" if it cannot be trusted: other users control its directory, or it is too large.
func (d Daemon) record() daemonRecord {
	if d.checkDirs() != nil {
		return ""
	}
	file, err := os.Open(filepath.Join(d.Paths.Run, rendezvous.DaemonRecord))
	if err != nil {
		return ""
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxRecord+1))
	if err != nil || len(data) > maxRecord {
		return ""
	}
	return daemonRecord(data)
}

// field returns the JSON value of a field, or "".
func (r daemonRecord) field(name string) string {
	_, rest, _ := strings.Cut(string(r), `"`+name+`":`)
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimRight(strings.TrimSpace(line), ",}")
}

func (r daemonRecord) pid() int {
	pid, err := strconv.Atoi(r.field("pid"))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// ControlProtocol returns the version of the running daemon and its range of protocols on control.sock, from its
// record. The range is 0 to 0 for a daemon that is too old to record one. ok is false if there is no complete record.
// The daemon that wrote the record may no longer run.
func (d Daemon) ControlProtocol() (version string, lo, hi int, ok bool) {
	record := d.record()
	version, err := strconv.Unquote(record.field("version"))
	if err != nil || !strings.HasSuffix(string(record), "}\n") {
		return "", 0, 0, false
	}
	lo, _ = strconv.Atoi(record.field("controlProtocolMin"))
	hi, _ = strconv.Atoi(record.field("controlProtocolMax"))
	return version, lo, hi, true
}
