package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/service-dev/service/ctl/internal/command"
)

// terminal is a program on a pseudo-terminal with its output.
type terminal struct {
	*testing.T
	cmd    *exec.Cmd
	master *os.File
	reader sync.WaitGroup

	mu    sync.Mutex
	shown strings.Builder
	seen  int // length of the output that was already awaited
}

// onTerminal starts servicectl on a terminal of the given width. env is added to a minimal environment.
func onTerminal(t *testing.T, home string, columns uint16, env []string, args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: 40})
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "servicectl"), args...)
	cmd.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm", "SERVICE_NO_AUTO_OPEN=1"}, env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = slave, slave, slave, home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	p := &terminal{T: t, cmd: cmd, master: master}
	p.reader.Go(func() {
		part := make([]byte, 4096)
		for {
			n, err := master.Read(part)
			p.mu.Lock()
			p.shown.Write(part[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	return p
}

// await waits until a text appears after the last awaited one.
func (p *terminal) await(text string) {
	p.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		p.mu.Lock()
		at := strings.Index(p.shown.String()[p.seen:], text)
		if at >= 0 {
			p.seen += at + len(text)
		}
		p.mu.Unlock()
		if at >= 0 {
			return
		}
	}
	p.Fatalf("%q is not on the terminal:\n%s", text, p.text())
}

// answer waits for a question and types a line.
func (p *terminal) answer(question, line string) {
	p.Helper()
	p.await(question)
	p.input(line + "\n")
}

func (p *terminal) input(text string) {
	p.Helper()
	if _, err := p.master.WriteString(text); err != nil {
		p.Fatal(err)
	}
}

// exits waits until the program exits with code and returns the terminal's output.
func (p *terminal) exits(code command.Exit) string {
	p.Helper()
	_ = p.cmd.Wait()
	p.reader.Wait()
	if got := command.Exit(p.cmd.ProcessState.ExitCode()); got != code {
		p.Fatalf("%v: got exit code %d, want %d\n%s", p.cmd.Args, got, code, p.text())
	}
	return p.text()
}

func (p *terminal) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.ReplaceAll(p.shown.String(), "\r\n", "\n")
}

// echoes reports whether the terminal echoes input.
func (p *terminal) echoes() bool {
	p.Helper()
	settings, err := unix.IoctlGetTermios(int(p.master.Fd()), unix.TCGETS)
	if err != nil {
		p.Fatal(err)
	}
	return settings.Lflag&unix.ECHO != 0
}
