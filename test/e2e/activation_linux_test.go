package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The service manager's sockets start the daemon when the first client connects. The daemon uses these sockets,
// leaves their files in place, reports that it is socket-activated, and does not pass the sockets to adapters.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	a := startActivator(w)
	if given, own := activations(w); given+own != 0 {
		t.Fatal("a daemon runs before any client connected")
	}
	if out, errs, exit := w.ctl("status"); exit != 1 { // status does not start a daemon
		t.Fatalf("status before any client connected: exit %d, want 1: %s%s", exit, out, errs)
	}
	if given, own := activations(w); given+own != 0 {
		t.Fatal("status started a daemon")
	}
	if _, errs, exit := w.ctl("plugin", "list"); exit != 0 {
		t.Fatalf("plugin list: exit %d, want 0: %s", exit, errs)
	}
	out, errs, exit := w.ctl("status", "--json")
	if exit != 0 || !strings.Contains(out, `"socketActivated": true`) || !strings.Contains(out, `"managed": true`) {
		t.Fatalf("status: exit %d, want a managed, socket-activated daemon: %s%s", exit, out, errs)
	}
	must(t, "READY=1 is heard", a.heard("READY=1"))
	must(t, "the daemon pings the watchdog", a.heard("WATCHDOG=1"))
	if _, errs, exit := w.ctl("doctor"); exit != 0 { // doctor starts an adapter
		t.Errorf("doctor: exit %d, want 0: %s", exit, errs)
	}
	pid := w.daemonPID()
	children := descendants(t, pid)
	if len(children) == 0 {
		t.Error("doctor started no adapter")
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
					t.Errorf("an adapter inherited the socket %s", path)
				}
			}
		}
	}

	if out, errs, exit := w.ctl("daemon", "stop"); exit != 0 {
		t.Fatalf("daemon stop: exit %d, want 0: %s%s", exit, out, errs)
	}
	must(t, "STOPPING=1 is heard", a.heard("STOPPING=1"))
	a.untouched()
	// This agent connects to the other socket.
	if line, err := firstAnswer(w, initialize); err != nil || !strings.Contains(line, `"serverInfo"`) {
		t.Errorf("initialize after the stop: got %s (error %v), want an answer", line, err)
	}
	if now := w.daemonPID(); now == pid || now == 0 {
		t.Errorf("the daemon's pid is %d, want a new one instead of %d", now, pid)
	}
	a.close()
	a.untouched()
	if given, own := activations(w); given != 2 || own != 0 {
		t.Errorf("%d daemons inherited sockets, %d did not; want 2 and 0", given, own)
	}
}

// descendants returns the processes below pid.
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

// sockets returns the Unix sockets of a process by inode, with the last part of their path.
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

// A daemon stops when it is idle, even if clients are connected. Clients do not notice, because new connections wait
// at the socket.
func TestSocketActivation_IdleDaemonLosesNothing(t *testing.T) {
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
			t.Fatal("the idle daemon did not stop within 30 s")
		}
		var clients sync.WaitGroup
		for i, ask := range []func(*world) error{coldWhoami, coldInitialize, coldWhoami, coldInitialize} {
			clients.Go(func() {
				time.Sleep(time.Duration(i) * rand.N(20*time.Millisecond)) // at a random moment while it is stopping
				if err := ask(w); err != nil {
					t.Error(err)
				}
			})
		}
		clients.Wait()
	}
	a.untouched()
	if given, own := activations(w); given < 1+times || own != 0 {
		t.Errorf("%d daemons inherited sockets, %d did not; want more than one and 0", given, own)
	}
}

// A service that is installed while a daemon started by a client is running takes over. The old daemon finishes its
// work and stops, the service's daemon waits for it, and a connected agent keeps working.
func TestSocketActivation_ServiceTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	agent := startAgent(w, "legacy", false)
	install := whoAmI(t, agent)
	before := w.daemonPID()
	a := startActivator(w)
	if out, errs, exit := w.ctl("status", "--json"); exit != 0 || !strings.Contains(out, `"socketActivated": true`) {
		t.Fatalf("status: exit %d, want a socket-activated daemon: %s%s", exit, out, errs)
	}
	if now := w.daemonPID(); now == before || now == 0 {
		t.Errorf("the daemon's pid is %d, want a new one instead of %d", now, before)
	}
	if now := whoAmI(t, agent); now != install {
		t.Errorf("the install id is %s, want the previous one %s", now, install)
	}
	a.untouched()
	if given, own := activations(w); given != 1 || own != 1 {
		t.Errorf("%d daemons inherited sockets, %d did not; want 1 and 1", given, own)
	}
}

// Sockets whose files were deleted are unreachable, so a daemon that inherits them creates its own.
func TestSocketActivation_DeletedSockets(t *testing.T) {
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
		t.Fatal("the daemon still runs 10 s after its sockets were deleted")
	}
	out, errs, exit := w.ctl("status", "--json")
	if exit == 1 { // no daemon is listening; the next client that needs one starts it
		w.ctl("plugin", "list")
		out, errs, exit = w.ctl("status", "--json")
	}
	if exit != 0 || !strings.Contains(out, `"socketActivated": false`) {
		t.Errorf("status: exit %d, want a daemon that is not socket-activated: %s%s", exit, out, errs)
	}
}
