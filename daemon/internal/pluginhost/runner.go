package pluginhost

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/internal/programpath"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// process is one start of an adapter, implemented as a runner of go-plugin. It differs from go-plugin's own runner in
// three ways: it restricts the environment, its stdin is a pipe that closes when the daemon exits, and it kills the
// whole process group.
type process struct {
	cmd     *exec.Cmd
	stdout  io.ReadCloser
	stdin   *os.File // the daemon's end; never written to
	log     *lineLog
	dir     string // sockets and temporary files of this start; removed by instance.stop
	onStart func() // called once the process is running
	done    chan struct{}
	wait    func() error
}

// command returns the command that runs the adapter from a file, with the listeners that it inherits. For a shipped
// adapter, the program name selects the adapter that serviced acts as. An added adapter runs from a copy, but its
// program name is the path of the original.
func (a *adapter) command(path string, listeners []*os.File) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), path)
	cmd.Args[0] = programpath.AdapterPrefix + a.name
	if a.added != nil {
		cmd.Args[0] = a.added.Path
	}
	cmd.ExtraFiles = listeners
	return cmd
}

// newProcess prepares to run cmd with env. dir must exist. onStart is called when the process is running and can be
// killed.
func newProcess(cmd *exec.Cmd, dir string, env []string, log *slog.Logger, onStart func(*process)) (*process, error) {
	p := &process{cmd: cmd, log: &lineLog{log: log}, dir: dir, done: make(chan struct{})}
	p.cmd.Env = env
	p.cmd.Dir = workDir()
	p.cmd.Stderr = p.log
	p.cmd.WaitDelay = time.Second
	ownGroup(p.cmd)
	p.onStart = func() { onStart(p) }
	var err error
	if p.stdout, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	p.wait = sync.OnceValue(func() error {
		err := p.cmd.Wait()
		_ = killGroup(p.cmd) // children that the process left behind
		p.log.flush()
		p.stdin.Close()
		close(p.done)
		return err
	})
	return p, nil
}

func (p *process) Start(context.Context) error {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	p.cmd.Stdin, p.stdin = theirs, ours
	if err := p.cmd.Start(); err != nil {
		ours.Close()
		return err
	}
	p.onStart()
	return nil
}

func (p *process) Wait(context.Context) error { return p.wait() }

// Kill kills the whole group. It returns nil if the process has already ended.
func (p *process) Kill(context.Context) error {
	if p.cmd.Process == nil {
		return nil
	}
	select {
	case <-p.done: // another process may already have the pid
		return nil
	default:
	}
	if err := killGroup(p.cmd); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func (p *process) Stdout() io.ReadCloser { return p.stdout }

// Stderr returns an empty reader, because go-plugin's log parser panics on some lines. lineLog reads stderr instead.
func (p *process) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

func (p *process) Name() string { return p.cmd.Path }

func (p *process) ID() string {
	if p.cmd.Process == nil {
		return ""
	}
	return strconv.Itoa(p.cmd.Process.Pid)
}

func (p *process) Diagnose(context.Context) string {
	return "the adapter's standard output is not the handshake; see the log for its standard error"
}

func (p *process) PluginToHost(network, addr string) (string, string, error) {
	return network, addr, nil
}
func (p *process) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

// workDir returns a directory that cannot be deleted and is on no volume that the user may want to unmount.
func workDir() string {
	if runtime.GOOS == "windows" {
		return ""
	}
	return "/"
}

// allowedVariables lists the environment variables that an adapter inherits from the daemon: those needed to run a
// program and to find certificates. They include no SERVICE_* variable.
var allowedVariables = []string{
	"PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
	"SystemRoot", "SystemDrive", "USERPROFILE", "LOCALAPPDATA", "APPDATA", "ProgramData",
}

// proxyVariables are inherited by shipped adapters only, because a proxy's address may contain a password.
var proxyVariables = []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy"}

// bluetoothVariable contains the address of BlueZ's D-Bus if it is not the default. Only shipped adapters inherit it.
const bluetoothVariable = "DBUS_SYSTEM_BUS_ADDRESS"

// environment returns the complete environment of an adapter: the allowed variables, go-plugin's own variables, the
// directory of this start, and the number of inherited listeners.
func (a *adapter) environment(handshake []string, dir string, listeners int) []string {
	names := allowedVariables
	if a.added == nil {
		names = slices.Concat(names, proxyVariables, []string{bluetoothVariable})
	}
	env := make([]string, 0, len(names)+len(handshake)+5)
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	if listeners > 0 {
		env = append(env, pluginv1.ListenersKey+"="+strconv.Itoa(listeners))
	}
	env = append(env, handshake...)
	return append(env, "PLUGIN_UNIX_SOCKET_DIR="+dir, "TMPDIR="+dir, "TEMP="+dir, "TMP="+dir)
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
