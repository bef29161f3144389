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

// TestInstallScript_FullDisk installs onto a disk that has no space for a second version.
func TestInstallScript_FullDisk(t *testing.T) {
	requireRoot(t)
	for _, shell := range installShells {
		t.Run(shell[0], func(t *testing.T) {
			f := newInstallFixture(t, shell...)
			f.prefix = t.TempDir()
			mount(t, f.prefix, "size=5m")
			f.release("1.0.0")
			f.install()
			f.release("2.0.0")
			f.refuses("1.0.0", "install.sh: ")
			if out, _ := f.run(); strings.Count("\n"+out, "\ntar: ") > 1 {
				t.Errorf("tar complains more than once:\n%s", out)
			}
			// No byte is free.
			if err := os.WriteFile(filepath.Join(f.prefix, "filler"), make([]byte, 8<<20), 0o644); err == nil {
				t.Fatal("the disk is not full")
			}
			f.refuses("1.0.0", "install.sh: ")
		})
	}
}

// mount mounts an in-memory file system until the test ends.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", options, "tmpfs", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		skip(t, "this machine refuses mount: "+strings.TrimSpace(string(out)))
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
}

// TestInstallScript_ReadOnlyHome installs as a user who cannot write to their home directory, and removes an
// installation of another user.
func TestInstallScript_ReadOnlyHome(t *testing.T) {
	requireRoot(t)
	f := newInstallFixture(t, "dash")
	f.release("1.0.0")
	public, err := os.MkdirTemp("/tmp", "install-")
	f.must(err)
	t.Cleanup(func() { _ = os.RemoveAll(public) })
	own := filepath.Join(public, "own")
	f.must(os.Chmod(public, 0o755))
	f.must(os.Mkdir(own, 0o755))
	f.must(os.Chown(own, 65534, 65534))
	f.home = filepath.Join(public, "home")
	f.must(os.Mkdir(f.home, 0o555))
	script, err := os.ReadFile(filepath.Join(f.dist, "install.sh"))
	f.must(err)
	f.must(os.WriteFile(filepath.Join(public, "install.sh"), script, 0o644))
	run := func(args ...string) (string, error) {
		cmd := f.command()
		cmd.Args = append([]string{"dash", filepath.Join(public, "install.sh")}, args...)
		cmd.Dir = public
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run()
	if err == nil || !strings.Contains(out, "cannot write to "+f.home) || !strings.Contains(out, "--prefix DIR") {
		t.Errorf("install.sh ended with %v:\n%s", err, out)
	}
	if out, err := run("--prefix", own); err != nil {
		t.Errorf("install.sh --prefix: %v\n%s", err, out)
	}
	f.prefix = own
	f.works("1.0.0")
	// Root has upgraded it, or has installed all of it.
	for _, roots := range []string{filepath.Join(own, "lib/service/1.0.0"), own} {
		output(t, "chown", "-hR", "root", roots)
		out, err = run("--prefix", own, "--uninstall")
		if err == nil || !strings.Contains(out, "install.sh: cannot write to "+roots) || !strings.Contains(out, "Next: ") {
			t.Errorf("with root's %s, install.sh --uninstall ended with %v:\n%s", roots, err, out)
		}
		f.works("1.0.0")
	}
}

// TestInstallScript_KilledAtRandom stops installations at random moments while the programs are used continuously.
func TestInstallScript_KilledAtRandom(t *testing.T) {
	const seed = 17
	moments := 7 // per shell
	if isFull() {
		moments = 20
	}
	for _, shell := range installShells {
		t.Run(shell[0], func(t *testing.T) {
			f := newInstallFixture(t, shell...)
			random := rand.New(rand.NewPCG(seed, uint64(len(shell[0]))))
			f.release("1.0.0")
			began := time.Now()
			f.install()
			whole := time.Since(began)
			for i := range moments {
				f.must(os.RemoveAll(f.prefix))
				f.release("1.0.0")
				f.install()
				f.release("2.0.0")
				signal := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL}[i%3]
				killedWhileUsed(t, f, time.Duration(random.Float64()*float64(whole)), signal)
				f.install()
				f.works("2.0.0")
				f.isTidy()
			}
		})
	}
}

// killedWhileUsed starts an upgrade and sends the signal to all of its processes after a while. Every call of a
// program in the meantime must work. Afterwards the programs must work, too, and have the same version.
func killedWhileUsed(t *testing.T, f *installFixture, after time.Duration, signal syscall.Signal) {
	t.Helper()
	cmd := f.command("--prefix", f.prefix)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	f.must(cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	kill := time.After(after)
	program := filepath.Join(f.prefix, "bin", "servicectl")
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
	if link, _ := os.Readlink(filepath.Join(f.prefix, "lib/service/current")); link != version {
		version = "2.0.0"
	}
	f.works(version)
	if signal != syscall.SIGKILL {
		f.isTidy()
	}
}
