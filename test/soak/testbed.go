//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
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

	"github.com/service-dev/service/test/browser"
	"github.com/service-dev/service/test/llmtest"
)

// diskSize is the size of the state directory's disk in bytes.
const diskSize = 64 << 20

// testbed is a machine with one user: programs, a state directory on a small disk, and a backend.
type testbed struct {
	root    string // all other directories are below it
	bin     string // directory of the programs; serviced is the soak build
	disk    string // mount point of the small disk; a plain directory if mounted is false
	state   string // SERVICE_CONFIG_DIR
	tmp     string // TMPDIR of all programs
	seam    string // file for setting the soak build's clock and reading its counts
	env     []string
	results *results

	mounted  bool
	intruder string // copy of this program that another user may run; empty if switching users is impossible
	backend  *backend
	// own and foreign are the auth.json of the linked account and of another account. install and account are the
	// linked ids.
	own, foreign                []byte
	install, account, foreigner string

	provider *llmtest.Provider
	people   []*browser.Linked // the owners of the two accounts; the owner of the linked one is last
	// greedyOwner owns the account that uses as much of the gateway as it can.
	greedyOwner *browser.Linked
}

// newTestbed creates the machine. from is the folder of the built programs. If race is set, the daemon is built with
// the race detector.
func newTestbed(from string, race bool, l *results) (*testbed, error) {
	root, err := os.MkdirTemp("/tmp", "soak") // short, because the length of socket paths is limited
	if err != nil {
		return nil, err
	}
	at := func(name string) string { return filepath.Join(root, name) }
	w := &testbed{root: root, bin: at("bin"), disk: at("disk"), tmp: at("tmp"), seam: at("seam"), results: l}
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
		l.skip("a full disk, because no small disk could be mounted:  " + err.Error())
	}
	if err := os.Mkdir(w.state, 0o700); err != nil {
		return w, err
	}
	if err := w.copyIntruder(); err != nil {
		return w, err
	}
	return w, w.programs(from, race)
}

// programs copies the programs and builds the daemon with test hooks, which a shipped build must not have.
func (w *testbed) programs(from string, race bool) error {
	for _, name := range []string{"servicectl", "service-mcp", "service-backend"} {
		if err := copyFile(filepath.Join(from, name), filepath.Join(w.bin, name)); err != nil {
			return err
		}
	}
	if err := w.adapters(filepath.Join(from, "serviced")); err != nil {
		return err
	}
	const pkg = "github.com/service-dev/service/daemon/internal/app.soakDir="
	args, cgo := []string{"build", "-trimpath", "-tags", "soak", "-ldflags", "-X " + pkg + w.seam, "-o", w.daemon()}, "0"
	if race {
		args, cgo = append(args, "-race"), "1"
	}
	build := exec.Command("go", append(args, "./daemon/serviced")...)
	build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the daemon with a movable clock: %w\n%s", err, out)
	}
	for path, want := range map[string]bool{filepath.Join(from, "serviced"): false, w.daemon(): true} {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(data, []byte("clock_soak.go")) != want {
			return fmt.Errorf("%s: has the soak build's test hooks: %v, want %v", path, !want, want)
		}
	}
	return nil
}

// adapters installs the shipped serviced under the adapters' names, because the daemon is a different build.
func (w *testbed) adapters(shipped string) error {
	data, err := os.ReadFile(shipped)
	if err != nil {
		return err
	}
	var manifest []byte
	for _, name := range []string{"backendhttp", "backendlocal", "browsersim", "localsim", "realdevice"} {
		file := "service-plugin-" + name
		if err := copyFile(shipped, filepath.Join(w.bin, file)); err != nil {
			return err
		}
		manifest = fmt.Appendf(manifest, "%x  %s\n", sha256.Sum256(data), file)
	}
	return os.WriteFile(filepath.Join(w.bin, "plugins.sha256"), manifest, 0o600)
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

func (w *testbed) daemon() string { return filepath.Join(w.bin, "serviced") }

func (w *testbed) auth() string { return filepath.Join(w.state, "auth.json") }

// command returns a command with the environment of a user or an agent.
func (w *testbed) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(w.bin, name), args...)
	cmd.Env, cmd.Dir = w.env, w.root
	return cmd
}

// configure sets the backend in the daemon's configuration.
func (w *testbed) configure() error {
	return os.WriteFile(filepath.Join(w.state, "config.yaml"), []byte("backend_url: "+w.backend.url+"\n"), 0o600)
}

const owner, password = "soak@example.org", "a long enough password"

// link links the machine to its own account with servicectl, and creates the auth.json of another account. It also
// creates a third account, the greedy one.
func (w *testbed) link() error {
	var foreign []byte
	for _, email := range []string{"greedy@example.org", "other@example.org"} {
		var err error
		if foreign, err = w.loginAs(email); err != nil {
			return err
		}
		if err := os.Remove(w.auth()); err != nil { // a logout would revoke the link, which is needed later
			return err
		}
		if !eventually(10*time.Second, func() bool { _, err := w.run("whoami"); return err != nil }) {
			return errors.New("the daemon did not notice that auth.json was removed")
		}
	}
	own, err := w.loginAs(owner)
	if err != nil {
		return err
	}
	w.own, w.foreign = own, foreign
	w.greedyOwner, w.people = w.people[0], w.people[1:]
	if w.account, err = accountOf(own); err != nil {
		return err
	}
	if w.foreigner, err = accountOf(foreign); err != nil {
		return err
	}
	out, err := w.run("whoami", "--json")
	var said struct{ InstallID string }
	if err != nil || json.Unmarshal(out, &said) != nil || said.InstallID == "" {
		return fmt.Errorf("whoami after the login: %w\n%s", err, out)
	}
	w.install = said.InstallID
	return nil
}

func accountOf(auth []byte) (string, error) {
	var f struct{ AccountID string }
	if err := json.Unmarshal(auth, &f); err != nil || f.AccountID == "" {
		return "", fmt.Errorf("auth.json after the login: %w", err)
	}
	return f.AccountID, nil
}

// loginAs runs servicectl login, approves as a new user, and returns the resulting auth.json.
func (w *testbed) loginAs(email string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	user, err := browser.New()
	if err != nil {
		return nil, err
	}
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
			if err := user.Approve(said.VerificationURL, email, password); err != nil {
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
	auth, err := os.ReadFile(w.auth())
	if err != nil {
		return nil, err
	}
	who := &browser.Linked{Base: w.backend.url, Browser: user}
	w.people = append(w.people, who)
	return auth, json.Unmarshal(auth, &struct{ AuthToken *string }{&who.Token})
}

// run runs servicectl and fails unless it exits with 0.
func (w *testbed) run(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
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

// remove ends all processes of the machine and deletes its files.
func (w *testbed) remove() {
	if w.backend != nil {
		w.backend.kill()
	}
	for _, p := range w.processes() {
		kill(p.pid)
	}
	if w.provider != nil {
		w.provider.Close()
	}
	if w.mounted {
		_ = syscall.Unmount(w.disk, syscall.MNT_DETACH)
	}
	os.RemoveAll(w.root)
	if w.intruder != "" {
		os.RemoveAll(filepath.Dir(w.intruder))
	}
}
