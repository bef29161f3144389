package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestK07_FullDisk installs onto a disk that has no room for a second version.
func TestK07_FullDisk(t *testing.T) {
	requireRoot(t)
	for _, shell := range installShells {
		t.Run(shell[0], func(t *testing.T) {
			w := newInstallWorld(t, shell...)
			w.prefix = t.TempDir()
			mount(t, w.prefix, "size=5m")
			w.release("1.0.0")
			w.install()
			w.release("2.0.0")
			w.refuses("1.0.0", "install.sh: ")
			// Not a byte is free.
			if err := os.WriteFile(filepath.Join(w.prefix, "filler"), make([]byte, 8<<20), 0o644); err == nil {
				t.Fatal("the disk is not full")
			}
			w.refuses("1.0.0", "install.sh: ")
		})
	}
}

// mount mounts a file system in memory until the test ends.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", options, "tmpfs", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		skip(t, "this machine refuses mount: "+strings.TrimSpace(string(out)))
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
}

// TestK07_ReadOnlyHome installs as a user who cannot write to their home directory.
func TestK07_ReadOnlyHome(t *testing.T) {
	requireRoot(t)
	w := newInstallWorld(t, "dash")
	w.release("1.0.0")
	public, err := os.MkdirTemp("/tmp", "install-")
	w.must(err)
	t.Cleanup(func() { _ = os.RemoveAll(public) })
	own := filepath.Join(public, "own")
	w.must(os.Chmod(public, 0o755))
	w.must(os.Mkdir(own, 0o755))
	w.must(os.Chown(own, 65534, 65534))
	w.home = filepath.Join(public, "home")
	w.must(os.Mkdir(w.home, 0o555))
	script, err := os.ReadFile(filepath.Join(w.dist, "install.sh"))
	w.must(err)
	w.must(os.WriteFile(filepath.Join(public, "install.sh"), script, 0o644))
	run := func(args ...string) (string, error) {
		cmd := w.command()
		cmd.Args = append([]string{"dash", filepath.Join(public, "install.sh")}, args...)
		cmd.Dir = public
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run()
	if err == nil || !strings.Contains(out, "cannot write to "+w.home) || !strings.Contains(out, "--prefix DIR") {
		t.Errorf("install.sh ended with %v:\n%s", err, out)
	}
	if out, err := run("--prefix", own); err != nil {
		t.Errorf("install.sh --prefix: %v\n%s", err, out)
	}
	w.prefix = own
	w.works("1.0.0")
}

// TestK07_Killed stops an installation at random moments, while somebody uses the programs all the time.
func TestK07_Killed(t *testing.T) {
	const seed = 17
	moments := 7 // of each shell
	if isFull() {
		moments = 20
	}
	for _, shell := range installShells {
		t.Run(shell[0], func(t *testing.T) {
			w := newInstallWorld(t, shell...)
			random := rand.New(rand.NewPCG(seed, uint64(len(shell[0]))))
			w.release("1.0.0")
			began := time.Now()
			w.install()
			whole := time.Since(began)
			for i := range moments {
				w.must(os.RemoveAll(w.prefix))
				w.release("1.0.0")
				w.install()
				w.release("2.0.0")
				signal := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL}[i%3]
				killedWhileUsed(t, w, time.Duration(random.Float64()*float64(whole)), signal)
				w.install()
				w.works("2.0.0")
				w.isTidy()
			}
		})
	}
}

// killedWhileUsed starts an upgrade and sends the signal to all of its processes after a while. Every call of a program
// during that time must work, and so must the programs afterwards, all of one version.
func killedWhileUsed(t *testing.T, w *installWorld, after time.Duration, signal syscall.Signal) {
	t.Helper()
	cmd := w.command("--prefix", w.prefix)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w.must(cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	kill := time.After(after)
	program := filepath.Join(w.prefix, "bin", "servicectl")
	for running := true; running; {
		select {
		case <-kill:
			_ = syscall.Kill(-cmd.Process.Pid, signal)
		case <-ended:
			running = false
		default:
			if out, err := exec.CommandContext(t.Context(), program, "version").CombinedOutput(); err != nil {
				t.Errorf("servicectl fails during the upgrade: %v\n%s", err, out)
			}
		}
	}
	version := "1.0.0"
	if link, _ := os.Readlink(filepath.Join(w.prefix, "lib/service/current")); link != version {
		version = "2.0.0"
	}
	w.works(version)
	if signal != syscall.SIGKILL {
		w.isTidy()
	}
}
