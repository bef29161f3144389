package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// activator does what systemd does with serviced.socket and serviced.service, in the open: it listens, starts the daemon
// when somebody connects, hears what it says, and starts it again with the first connection after its end.
type activator struct {
	w      *world
	files  []*os.File // the sockets
	inodes map[string]os.FileInfo
	notify string
	stops  chan struct{} // gets something when a daemon says that it stops
	end    context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	said  []string
	ended []string // how each daemon ended
}

// startActivator takes the sockets' places, whoever had them.
func startActivator(w *world) *activator {
	t := w.t
	t.Helper()
	run := filepath.Join(w.dir, "run")
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	a := &activator{
		w: w, inodes: map[string]os.FileInfo{}, notify: filepath.Join(filepath.Dir(w.dir), "notify"),
		stops: make(chan struct{}, 100), end: cancel, done: make(chan struct{}),
	}
	for _, name := range []string{"control.sock", "mcp.sock"} {
		path := filepath.Join(run, name)
		_ = os.Remove(path)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		file, err := l.File()
		l.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		a.files = append(a.files, file)
		if a.inodes[path], err = os.Lstat(path); err != nil {
			t.Fatal(err)
		}
	}
	hear, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: a.notify, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	go a.hear(hear)
	go a.keep(ctx, hear)
	t.Cleanup(a.close)
	return a
}

func (a *activator) close() {
	a.end()
	<-a.done
}

func (a *activator) hear(conn *net.UnixConn) {
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		a.mu.Lock()
		a.said = append(a.said, string(buf[:n]))
		a.mu.Unlock()
		if strings.HasPrefix(string(buf[:n]), "STOPPING=1") {
			a.stops <- struct{}{}
		}
	}
}

// keep starts one daemon after the other until ctx ends.
func (a *activator) keep(ctx context.Context, hear *net.UnixConn) {
	defer close(a.done)
	defer hear.Close()
	for a.wanted(ctx) {
		cmd := exec.CommandContext(ctx, "sh", "-c", `LISTEN_PID=$$ exec "$0" run --managed`, filepath.Join(bin, "serviced"))
		cmd.Env = append(append([]string{}, a.w.env...), "LISTEN_FDS=2", "LISTEN_FDNAMES=serviced.socket:serviced.socket", "NOTIFY_SOCKET="+a.notify, "WATCHDOG_USEC=3000000")
		cmd.Dir, cmd.ExtraFiles = "/", a.files
		cmd.Cancel = func() error {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			return os.ErrProcessDone // how it ends is what counts
		}
		out, err := cmd.CombinedOutput()
		a.mu.Lock()
		a.ended = append(a.ended, fmt.Sprintf("%v: %s", err, tail(string(out), 5)))
		a.mu.Unlock()
	}
	for _, file := range a.files {
		file.Close()
	}
}

// wanted waits until a connection waits at a socket; false when ctx ended.
func (a *activator) wanted(ctx context.Context) bool {
	fds := make([]unix.PollFd, len(a.files))
	for ctx.Err() == nil {
		for i, file := range a.files {
			fds[i] = unix.PollFd{Fd: int32(file.Fd()), Events: unix.POLLIN}
		}
		if n, err := unix.Poll(fds, 50); err == nil && n > 0 {
			return true
		}
	}
	return false
}

// heard tells whether the daemon said a line that begins so.
func (a *activator) heard(start string) func() bool {
	return func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, text := range a.said {
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, start) {
					return true
				}
			}
		}
		return false
	}
}

// untouched fails unless the sockets are the ones that were made, and every daemon so far was given them and ended well.
func (a *activator) untouched() {
	a.w.t.Helper()
	for path, before := range a.inodes {
		if now, err := os.Lstat(path); err != nil || !os.SameFile(before, now) || now.Mode().Perm() != 0o600 {
			a.w.t.Errorf("%s was touched: %v, %v", path, now, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, end := range a.ended {
		if !strings.HasPrefix(end, "<nil>") {
			a.w.t.Errorf("a daemon ended with %s", end)
		}
	}
}

// activations counts the daemons that came up, by whether they were given their sockets.
func activations(w *world) (given, own int) {
	log, _ := os.ReadFile(filepath.Join(w.dir, "log", "serviced.log"))
	given = strings.Count(string(log), `"activated":true`)
	return given, strings.Count(string(log), `"the daemon is up"`) - given
}

// The service manager's sockets start the daemon with the first client; it takes them over, leaves them in place, tells
// how it is, and hands none of it on to an adapter.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	a := startActivator(w)
	if given, own := activations(w); given+own != 0 {
		t.Fatal("a daemon runs before anybody came")
	}
	out, errs, exit := w.ctl("status", "--json")
	if exit != 0 || !strings.Contains(out, `"socketActivated": true`) || !strings.Contains(out, `"managed": true`) {
		t.Fatalf("status: exit %d: %s%s", exit, out, errs)
	}
	must(t, "READY=1 is heard", a.heard("READY=1"))
	must(t, "the watchdog is answered", a.heard("WATCHDOG=1"))
	if _, errs, exit := w.ctl("doctor"); exit != 0 { // it starts an adapter
		t.Errorf("doctor: exit %d: %s", exit, errs)
	}
	pid := w.daemonPID()
	children := descendants(t, pid)
	if len(children) == 0 {
		t.Error("no adapter runs")
	}
	inherited := sockets(t, pid)
	for _, child := range children {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", child))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"LISTEN_", "NOTIFY_SOCKET", "WATCHDOG_"} {
			if strings.Contains(string(environ), name) {
				t.Errorf("an adapter has %s in its environment", name)
			}
		}
		for _, path := range []string{"control.sock", "mcp.sock"} {
			for inode := range sockets(t, child) {
				if inherited[inode] == path {
					t.Errorf("an adapter has inherited %s", path)
				}
			}
		}
	}

	if out, errs, exit := w.ctl("daemon", "stop"); exit != 0 {
		t.Fatalf("daemon stop: exit %d: %s%s", exit, out, errs)
	}
	must(t, "STOPPING=1 is heard", a.heard("STOPPING=1"))
	a.untouched()
	if line, err := firstAnswer(w, initialize); err != nil || !strings.Contains(line, `"serverInfo"`) { // by the other socket
		t.Errorf("an agent after the stop: %s, %v", line, err)
	}
	if now := w.daemonPID(); now == pid || now == 0 {
		t.Errorf("the daemon's pid is %d, was %d", now, pid)
	}
	a.close()
	a.untouched()
	if given, own := activations(w); given != 2 || own != 0 {
		t.Errorf("%d daemons were given sockets, %d were not", given, own)
	}
}

// descendants are the processes below pid.
func descendants(t *testing.T, pid int) (all []int) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), descendants(t, child)...)
			}
		}
	}
	return all
}

// sockets are the Unix sockets that a process holds, by inode, with the last part of their path.
func sockets(t *testing.T, pid int) map[string]string {
	t.Helper()
	names := map[string]string{}
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) == 8 {
			names["socket:["+f[6]+"]"] = filepath.Base(f[7])
		}
	}
	held := map[string]string{}
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && strings.HasPrefix(target, "socket:") {
			held[target] = names[target]
		}
	}
	return held
}

// Idle daemons end under their clients' hands, and nobody notices: a connection that comes meanwhile waits at the socket.
func TestIdleActivationLosesNothing(t *testing.T) {
	t.Parallel()
	times := full(40, 4)
	w := newWorld(t, "idle_timeout: 1\n")
	a := startActivator(w)
	if err := coldWhoami(w); err != nil {
		t.Fatal(err)
	}
	for range times {
		select {
		case <-a.stops:
		case <-time.After(30 * time.Second):
			t.Fatal("the daemon does not stop when idle")
		}
		var clients sync.WaitGroup
		for i, ask := range []func(*world) error{coldWhoami, coldInitialize, coldWhoami, coldInitialize} {
			clients.Go(func() {
				time.Sleep(time.Duration(i) * rand.N(20*time.Millisecond)) // anywhere in its last moments
				if err := ask(w); err != nil {
					t.Error(err)
				}
			})
		}
		clients.Wait()
	}
	a.untouched()
	if given, own := activations(w); given < 1+times || own != 0 {
		t.Errorf("%d daemons were given sockets, %d were not", given, own)
	}
}

// A service that is installed while a daemon of a client's runs takes over: that one finishes and ends, the service's
// waits for it, and a connected agent goes on.
func TestServiceTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	agent := startAgent(w, "legacy", false)
	install := whoAmI(t, agent)
	before := w.daemonPID()
	a := startActivator(w)
	if out, errs, exit := w.ctl("status", "--json"); exit != 0 || !strings.Contains(out, `"socketActivated": true`) {
		t.Fatalf("status: exit %d: %s%s", exit, out, errs)
	}
	if now := w.daemonPID(); now == before || now == 0 {
		t.Errorf("the daemon's pid is %d, was %d", now, before)
	}
	if now := whoAmI(t, agent); now != install {
		t.Errorf("the install is %s, was %s", now, install)
	}
	a.untouched()
	if given, own := activations(w); given != 1 || own != 1 {
		t.Errorf("%d daemons were given sockets, %d were not", given, own)
	}
}

// Sockets whose files were deleted reach nobody: a daemon that is given such makes its own.
func TestDeletedSocketsAreMadeAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	a := startActivator(w)
	conn, err := net.Dial("unix", filepath.Join(w.dir, "run", "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	must(t, "it is up", a.heard("READY=1"))
	pid := w.daemonPID()
	for path := range a.inodes {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if !waitGone(pid, 10*time.Second) {
		t.Fatal("the daemon outlived its sockets by 10 s")
	}
	out, errs, exit := w.ctl("status", "--json")
	if exit == 1 { // nobody listens: the next client that wants something starts one
		w.ctl("plugin", "list")
		out, errs, exit = w.ctl("status", "--json")
	}
	if exit != 0 || !strings.Contains(out, `"socketActivated": false`) {
		t.Errorf("status: exit %d: %s%s", exit, out, errs)
	}
}
