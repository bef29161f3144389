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

	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/rendezvous"
)

// ErrRunning means that a daemon is already running in the directory.
var ErrRunning = errors.New("another serviced is already running in this directory")

// instance is a running daemon: its lock, which is held until the process exits, its two sockets and daemon.json.
type instance struct {
	paths        rendezvous.Paths
	lock         *flock.Flock
	file         os.FileInfo
	sockets      map[string]os.FileInfo // the files of the sockets as created, by path
	inherited    Listeners              // the service manager's sockets, which outlive this daemon
	activated    bool                   // whether an inherited socket is in use
	Control, MCP net.Listener
}

// daemonRecord is the content of daemon.json. Clients read it before they connect, and users for diagnosis.
type daemonRecord struct {
	PID        int       `json:"pid"`
	Version    string    `json:"version"`
	ControlMin int       `json:"controlProtocolMin"`
	ControlMax int       `json:"controlProtocolMax"`
	MCPMin     int       `json:"mcpProtocolMin"`
	MCPMax     int       `json:"mcpProtocolMax"`
	StartedAt  time.Time `json:"startedAt"`
	Managed    bool      `json:"managed"`
	Control    string    `json:"controlSocket"`
	MCP        string    `json:"mcpSocket"`
}

// acquire locks the directory, then opens the sockets or adopts the service manager's sockets. It never touches the
// sockets of a running daemon.
func acquire(ctx context.Context, p rendezvous.Paths, o Options, started time.Time) (*instance, error) {
	h := &instance{
		paths: p, sockets: map[string]os.FileInfo{}, inherited: o.Sockets,
		lock: flock.New(filepath.Join(p.Run, rendezvous.DaemonLock), flock.SetPermissions(0o600)),
	}
	got, err := h.await(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", h.lock.Path(), err)
	}
	if !got {
		return nil, fmt.Errorf("%w: %s (pid %d); stop it with `servicectl daemon stop`", ErrRunning, p.Dir, runningPID(p))
	}
	if h.file, err = os.Stat(h.lock.Path()); err != nil {
		_ = h.lock.Unlock()
		return nil, fmt.Errorf("read the lock: %w", err)
	}
	// Remove the record of a daemon that was killed, so that it is not mistaken for this daemon's.
	_ = os.Remove(filepath.Join(p.Run, rendezvous.DaemonRecord))
	if err := h.open(o.Managed, started); err != nil {
		h.release()
		return nil, err
	}
	h.closeUnused()
	return h, nil
}

func (h *instance) open(managed bool, started time.Time) (err error) {
	// Create the directories again, because a stopping daemon may have removed the sockets' directory.
	if err := prepareDirs(h.paths); err != nil {
		return err
	}
	removeEntries(h.paths.Adapters())
	if h.Control, err = h.listen(h.paths.Control); err != nil {
		return err
	}
	if h.MCP, err = h.listen(h.paths.MCP); err != nil {
		return err
	}
	data, err := json.MarshalIndent(daemonRecord{
		PID: os.Getpid(), Version: buildinfo.Version,
		ControlMin: rendezvous.ControlProtocolMin, ControlMax: rendezvous.ControlProtocolMax,
		MCPMin: rendezvous.MCPProtocolMin, MCPMax: rendezvous.MCPProtocolMax,
		StartedAt: started.UTC(), Managed: managed, Control: h.paths.Control, MCP: h.paths.MCP,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(h.paths.Run, rendezvous.DaemonRecord), append(data, '\n'), 0o600)
}

// listen opens a socket at path. Because the caller holds the lock, an existing file there either belongs to the
// service manager or was left by a dead daemon.
func (h *instance) listen(path string) (net.Listener, error) {
	if l := h.adopt(path); l != nil {
		return l, nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove a stale socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	l.SetUnlinkOnClose(false) // at exit, the path may belong to a newer daemon
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	if h.sockets[path], err = os.Lstat(path); err != nil {
		l.Close()
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	return l, nil
}

// isLost reports whether clients can no longer find the daemon because its directory or a socket was deleted.
func (h *instance) isLost() bool {
	return h.isGone() || isReplaced(h.paths.Control, h.sockets) || isReplaced(h.paths.MCP, h.sockets)
}

// isGone reports whether the lock file is no longer at its path. The directory may then belong to a newer daemon.
func (h *instance) isGone() bool {
	info, err := os.Stat(h.lock.Path())
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	return !os.SameFile(info, h.file)
}

// isReplaced reports whether the socket at path is not the one that the daemon created. A file system does not reuse
// the socket's inode while the daemon listens. On Windows, sockets cannot be opened for comparison, so only a missing
// socket is detected.
func isReplaced(path string, made map[string]os.FileInfo) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	return runtime.GOOS != "windows" && !os.SameFile(info, made[path])
}

// release closes the sockets, removes the files that still belong to this daemon and releases the lock.
func (h *instance) release() {
	var ours []string
	for path := range h.sockets {
		if !h.isActivated(path) && !isReplaced(path, h.sockets) { // compare before closing, which frees the inode
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
	if !h.isGone() {
		_ = os.Remove(filepath.Join(h.paths.Run, rendezvous.DaemonRecord))
		h.removeAdapterDirs()
	} else if _, err := os.Stat(h.paths.Run); errors.Is(err, os.ErrNotExist) {
		h.removeAdapterDirs() // a later daemon does not remove these directories
	}
	_ = h.lock.Unlock()
}

// removeAdapterDirs empties the adapters' directory. If its path is too long for sockets, removeAdapterDirs also
// deletes the directory with a short path that replaces it.
func (h *instance) removeAdapterDirs() {
	adapters := h.paths.Adapters()
	removeEntries(adapters)
	if short := filepath.Dir(adapters); short != h.paths.Run {
		_ = os.Remove(adapters)
		_ = os.Remove(short) // fails if it contains files of other programs
	}
}

// removeEntries removes leftovers of earlier adapter runs from dir.
func removeEntries(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		_ = os.RemoveAll(filepath.Join(dir, e.Name()))
	}
}

// runningPID returns the PID of the running daemon, or 0 if it is unknown.
func runningPID(p rendezvous.Paths) int {
	var r daemonRecord
	data, err := os.ReadFile(filepath.Join(p.Run, rendezvous.DaemonRecord))
	if err != nil || len(data) > 64<<10 || json.Unmarshal(data, &r) != nil {
		return 0
	}
	return r.PID
}
