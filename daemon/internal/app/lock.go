package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"

	"github.com/service-dev/service/proto/buildinfo"
	"github.com/service-dev/service/proto/rendezvous"
)

// ErrRunning is the refusal of a second daemon for one directory.
var ErrRunning = errors.New("another serviced runs for this directory")

// hold is the daemon's place: the lock that it keeps for life and, under it, the two sockets and daemon.json.
type hold struct {
	paths        rendezvous.Paths
	lock         *flock.Flock
	file         os.FileInfo
	sockets      map[string]os.FileInfo // by path, as they were made
	given        Listeners              // the service manager's, which stay when the daemon goes
	activated    bool                   // one of them is in use
	Control, MCP net.Listener
}

// record is daemon.json: for people and for clients that report on a daemon which does not answer.
type record struct {
	PID         int       `json:"pid"`
	Version     string    `json:"version"`
	ProtocolMin int       `json:"protocolMin"`
	ProtocolMax int       `json:"protocolMax"`
	StartedAt   time.Time `json:"startedAt"`
	Managed     bool      `json:"managed"`
	Control     string    `json:"controlSocket"`
	MCP         string    `json:"mcpSocket"`
}

// take locks the directory and opens the sockets, or takes over those of the service manager. A living daemon's sockets
// are never touched.
func take(ctx context.Context, p rendezvous.Paths, o Options, started time.Time) (*hold, error) {
	h := &hold{
		paths: p, sockets: map[string]os.FileInfo{}, given: o.Sockets,
		lock: flock.New(filepath.Join(p.Run, rendezvous.DaemonLock), flock.SetPermissions(0o600)),
	}
	got, err := h.await(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", h.lock.Path(), err)
	}
	if !got {
		return nil, fmt.Errorf("%w: %s (pid %d); stop it with `servicectl daemon stop`", ErrRunning, p.Dir, pidOf(p))
	}
	if h.file, err = os.Stat(h.lock.Path()); err != nil {
		_ = h.lock.Unlock()
		return nil, fmt.Errorf("reading the lock: %w", err)
	}
	if err := h.open(o.Managed, started); err != nil {
		h.release()
		return nil, err
	}
	h.dismiss()
	return h, nil
}

func (h *hold) open(managed bool, started time.Time) (err error) {
	if err := prepare(h.paths); err != nil { // again: a daemon that ended meanwhile removed the sockets' directory
		return err
	}
	empty(h.paths.Adapters())
	if h.Control, err = h.listen(h.paths.Control); err != nil {
		return err
	}
	if h.MCP, err = h.listen(h.paths.MCP); err != nil {
		return err
	}
	data, err := json.MarshalIndent(record{
		PID: os.Getpid(), Version: buildinfo.Version, ProtocolMin: rendezvous.ProtocolMin, ProtocolMax: rendezvous.ProtocolMax,
		StartedAt: started.UTC(), Managed: managed, Control: h.paths.Control, MCP: h.paths.MCP,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(h.paths.Run, rendezvous.DaemonRecord), append(data, '\n'), 0o600)
}

// listen opens one socket. What lies at its path is the service manager's, or was left by a daemon that is dead, for we
// hold the lock.
func (h *hold) listen(path string) (net.Listener, error) {
	if l := h.adopt(path); l != nil {
		return l, nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing a stale socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("opening a socket: %w", err)
	}
	l.SetUnlinkOnClose(false) // by then the path may be a younger daemon's
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("opening a socket: %w", err)
	}
	if h.sockets[path], err = os.Lstat(path); err != nil {
		l.Close()
		return nil, fmt.Errorf("opening a socket: %w", err)
	}
	return l, nil
}

// lost tells that no client can find the daemon any more: its directory was deleted or a socket was.
func (h *hold) lost() bool {
	return h.gone() || replaced(h.paths.Control, h.sockets) || replaced(h.paths.MCP, h.sockets)
}

// gone tells that the lock's file is not at its path any more: the directory may be a younger daemon's.
func (h *hold) gone() bool {
	info, err := os.Stat(h.lock.Path())
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	return !os.SameFile(info, h.file)
}

// replaced tells that a socket is not the one that was made. While it listens its inode is not used again. Windows
// cannot open a socket to compare it, so there only a missing one counts.
func replaced(path string, made map[string]os.FileInfo) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	return runtime.GOOS != "windows" && !os.SameFile(info, made[path])
}

// release closes the sockets, removes what is still ours and lets the lock go.
func (h *hold) release() {
	var ours []string
	for path := range h.sockets {
		if !h.isGiven(path) && !replaced(path, h.sockets) { // told before the close, which sets the inode free
			ours = append(ours, path)
		}
	}
	for _, l := range []net.Listener{h.Control, h.MCP} {
		if l != nil {
			_ = l.Close()
		}
	}
	for _, path := range ours {
		_ = os.Remove(path)
	}
	if !h.gone() {
		_ = os.Remove(filepath.Join(h.paths.Run, rendezvous.DaemonRecord))
		h.clear()
	} else if _, err := os.Stat(h.paths.Run); errors.Is(err, os.ErrNotExist) {
		h.clear() // there is no heir
	}
	_ = h.lock.Unlock()
}

// clear empties the adapters' directory, and removes the short directory that a long state directory makes necessary.
func (h *hold) clear() {
	adapters := h.paths.Adapters()
	empty(adapters)
	if short := filepath.Dir(adapters); short != h.paths.Run {
		_ = os.Remove(adapters)
		_ = os.Remove(short) // fails when something of others is in it
	}
}

// empty removes what earlier starts of adapters left behind.
func empty(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		_ = os.RemoveAll(filepath.Join(dir, e.Name()))
	}
}

// pidOf reads the pid of the running daemon; 0 when it cannot be told.
func pidOf(p rendezvous.Paths) int {
	var r record
	data, err := os.ReadFile(filepath.Join(p.Run, rendezvous.DaemonRecord))
	if err != nil || len(data) > 64<<10 || json.Unmarshal(data, &r) != nil {
		return 0
	}
	return r.PID
}
