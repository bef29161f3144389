//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/service-dev/service/packaging/person"
)

// diskSize is how much the state directory's own disk holds, in bytes.
const diskSize = 64 << 20

// world is one person's machine: programs, a state directory on a small disk of its own, a backend.
type world struct {
	root   string // everything is below
	bin    string // the programs; serviced is the soak build
	disk   string // where the small disk is mounted; a plain directory when mounted is false
	state  string // SERVICE_CONFIG_DIR
	tmp    string // TMPDIR of every program
	seam   string // the soak build's clock and counts
	env    []string
	ledger *ledger

	mounted  bool
	intruder string // this program where another user may run it; empty where nobody can be one
	backend  *backend
	// own and foreign are auth.json of the linked account and of another one; install and account are the linked ones.
	own, foreign                []byte
	install, account, foreigner string
}

// newWorld lays out the machine. from is where make put the programs; race builds the daemon with the race detector.
func newWorld(from string, race bool, l *ledger) (*world, error) {
	root, err := os.MkdirTemp("/tmp", "soak") // short: socket paths have a limit
	if err != nil {
		return nil, err
	}
	at := func(name string) string { return filepath.Join(root, name) }
	w := &world{root: root, bin: at("bin"), disk: at("disk"), tmp: at("tmp"), seam: at("seam"), ledger: l}
	w.state = filepath.Join(w.disk, "state")
	for _, dir := range []string{w.bin, w.disk, w.tmp, w.seam, at("data")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return w, err
		}
	}
	w.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + root, "LANG=C.UTF-8", "TMPDIR=" + w.tmp,
		"SERVICE_CONFIG_DIR=" + w.state, "SERVICE_NO_AUTO_OPEN=1",
	}
	if err := syscall.Mount("soak", w.disk, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", diskSize)); err == nil {
		w.mounted = true
	} else {
		l.skip("a full disk, for no small disk could be mounted: " + err.Error())
	}
	if err := os.Mkdir(w.state, 0o700); err != nil {
		return w, err
	}
	if err := w.copyIntruder(); err != nil {
		return w, err
	}
	return w, w.programs(from, race)
}

// programs copies the programs and builds the daemon anew, with the seam that the shipped one must not have.
func (w *world) programs(from string, race bool) error {
	for _, name := range []string{"servicectl", "service-mcp", "service-backend", "plugins.sha256"} {
		if err := copyFile(filepath.Join(from, name), filepath.Join(w.bin, name)); err != nil {
			return err
		}
	}
	adapters, _ := filepath.Glob(filepath.Join(from, "service-plugin-*"))
	for _, path := range adapters {
		if err := copyFile(path, filepath.Join(w.bin, filepath.Base(path))); err != nil {
			return err
		}
	}
	const pkg = "github.com/service-dev/service/daemon/internal/app.soakDir="
	args, cgo := []string{"build", "-trimpath", "-tags", "soak", "-ldflags", "-X " + pkg + w.seam, "-o", w.daemon()}, "0"
	if race {
		args, cgo = append(args, "-race"), "1"
	}
	build := exec.Command("go", append(args, "./daemon/serviced")...)
	build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the daemon with a clock that can be moved: %w\n%s", err, out)
	}
	for path, want := range map[string]bool{filepath.Join(from, "serviced"): false, w.daemon(): true} {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(data, []byte("clock_soak.go")) != want {
			return fmt.Errorf("%s: has the soak build's seam: %v, want %v", path, !want, want)
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}

func (w *world) daemon() string { return filepath.Join(w.bin, "serviced") }

func (w *world) auth() string { return filepath.Join(w.state, "auth.json") }

// command is a program of ours, as a person or an agent starts it.
func (w *world) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(w.bin, name), args...)
	cmd.Env, cmd.Dir = w.env, w.root
	return cmd
}

// configure makes the backend the daemon's own, as a person does.
func (w *world) configure() error {
	return os.WriteFile(filepath.Join(w.state, "config.yaml"), []byte("backend_url: "+w.backend.url+"\n"), 0o600)
}

const owner, password = "soak@example.org", "a long enough password"

// link links the machine to an account of its own with servicectl, and makes the auth.json of another person's.
func (w *world) link() error {
	foreign, err := w.loginAs("other@example.org")
	if err != nil {
		return err
	}
	if err := os.Remove(w.auth()); err != nil { // a logout would revoke the link, which is put back later
		return err
	}
	if !eventually(10*time.Second, func() bool { _, err := w.run("whoami"); return err != nil }) {
		return errors.New("the daemon does not notice that auth.json is gone")
	}
	own, err := w.loginAs(owner)
	if err != nil {
		return err
	}
	w.own, w.foreign = own, foreign
	if w.account, err = accountOf(own); err != nil {
		return err
	}
	if w.foreigner, err = accountOf(foreign); err != nil {
		return err
	}
	out, err := w.run("whoami", "--json")
	var who struct{ InstallID string }
	if err != nil || json.Unmarshal(out, &who) != nil || who.InstallID == "" {
		return fmt.Errorf("whoami after the login: %w\n%s", err, out)
	}
	w.install = who.InstallID
	return nil
}

func accountOf(auth []byte) (string, error) {
	var f struct{ AccountID string }
	if err := json.Unmarshal(auth, &f); err != nil || f.AccountID == "" {
		return "", fmt.Errorf("auth.json after the login: %w", err)
	}
	return f.AccountID, nil
}

// loginAs runs servicectl login, approves as a new person, and gives the auth.json that came of it.
func (w *world) loginAs(email string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := w.command(ctx, "servicectl", "login", "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := json.NewDecoder(out)
	for {
		var said struct {
			Event, VerificationURL string
			Error                  json.RawMessage
		}
		if err := lines.Decode(&said); err != nil {
			return nil, errors.Join(fmt.Errorf("login of %s ended early: %w", email, err), cmd.Wait())
		}
		if said.Event == "error" {
			return nil, errors.Join(fmt.Errorf("login of %s was refused: %s", email, said.Error), cmd.Wait())
		}
		if said.Event == "code" {
			who, err := person.New()
			if err != nil {
				return nil, err
			}
			if err := who.Approve(said.VerificationURL, email, password); err != nil {
				return nil, err
			}
		}
		if said.Event == "linked" {
			break
		}
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		return nil, err
	}
	return os.ReadFile(w.auth())
}

// run runs servicectl to its end, which must be a good one.
func (w *world) run(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	out, err := w.command(ctx, "servicectl", args...).Output()
	if err != nil {
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			out = append(out, ended.Stderr...)
		}
		return out, fmt.Errorf("servicectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return out, nil
}

// remove takes the machine away, with whatever still runs on it.
func (w *world) remove() {
	if w.backend != nil {
		w.backend.kill()
	}
	for _, p := range w.processes() {
		kill(p.pid)
	}
	if w.mounted {
		_ = syscall.Unmount(w.disk, syscall.MNT_DETACH)
	}
	os.RemoveAll(w.root)
	if w.intruder != "" {
		os.RemoveAll(filepath.Dir(w.intruder))
	}
}
