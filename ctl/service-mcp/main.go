// Command service-mcp is the program that a coding agent starts. Without arguments, or with --tools NAME, it forwards
// MCP between its stdio and the user's daemon. With other arguments it runs servicectl, the command line for users.
package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"

	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/ctl/internal/stdioproxy"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/programpath"
	"github.com/service-dev/service/internal/rendezvous"
)

func main() {
	if program, ok := dialer.IsStarter(os.Args); ok {
		os.Exit(dialer.StartDetached(program))
	}
	toolset, ok := toolsetOf(os.Args[1:])
	if !ok {
		os.Exit(run("servicectl", append([]string{"service-mcp"}, os.Args[1:]...)))
	}
	os.Exit(serve(toolset))
}

// toolsetOf parses the arguments that an agent passes to service-mcp: none, or --tools NAME. ok is false for other
// arguments, which a user typed.
func toolsetOf(args []string) (name string, ok bool) {
	switch {
	case len(args) == 0:
		return rendezvous.ToolsetAll, true
	case len(args) == 1:
		return strings.CutPrefix(args[0], "--tools=")
	case len(args) == 2 && args[0] == "--tools":
		return args[1], true
	}
	return "", false
}

// run replaces this process with another program of the service. It returns only on failure.
func run(name string, argv []string) int {
	path, err := programpath.Beside(name)
	if err == nil {
		err = dialer.Exec(path, argv)
	}
	os.Stderr.WriteString("service-mcp: " + err.Error() + "\n")
	return 2
}

func serve(toolset string) int {
	// If stdin cannot be polled, it is read with blocking calls. With several processors, the Go runtime leaves one
	// of them assigned to a thread in such a call for up to 10 ms, during which each message waits or spins. With a
	// single processor, the runtime reclaims it immediately.
	runtime.GOMAXPROCS(1)
	ctx, parent := context.Background(), os.Getppid()
	daemon, findErr := dialer.Find()
	cwd := dialer.WorkingDir()
	in, restore := pollable(os.Stdin, os.Stdout, os.Stderr)
	defer restore()
	p := stdioproxy.New(stdioproxy.Options{
		In: in, Out: os.Stdout,
		HalfClose: dialer.HalfClose, ClientIO: startClientIO,
		Orphaned: func() { dialer.AwaitParent(parent) },
		Starting: func() bool { return !daemon.Held() },
		Running:  func() bool { return findErr == nil && daemon.Held() },
		Explain: func(err error) *problem.Error {
			if errors.Is(err, stdioproxy.ErrSilent) {
				return daemon.NotResponding()
			}
			return nil
		},
		Handshake: stdioproxy.Handshake{Client: "service-mcp", Version: buildinfo.Version, Cwd: cwd,
			Env: rendezvous.Environ(), Toolset: toolset, Agent: rendezvous.AgentID()},
		Connect: func(ctx context.Context) (dialer.Conn, error) {
			daemon, err := dialer.Find()
			if err != nil {
				return nil, err
			}
			return daemon.Connect(ctx, daemon.Paths.MCP)
		},
	})
	if err := p.Open(ctx); problem.CodeOf(err) == problem.CodeSandboxBlocked && readable(daemon.Paths.Dir) {
		// Stdin has not been read yet, so another program can still use it.
		restore()
		if code := run("serviced", inProcess(toolset)); code != 2 {
			return code
		}
	}
	if err := p.Run(ctx); err != nil {
		return 1
	}
	return 0
}

// startClientIO runs `servicectl client-io`, which opens pages and reads and writes files for the daemon with the
// agent's own permissions and environment. It receives the token over stdin, which closes when this process exits.
func startClientIO(token string) {
	path, err := programpath.Beside("servicectl")
	if err != nil {
		return
	}
	in, out, err := os.Pipe()
	if err != nil {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		in.Close()
		out.Close()
		return
	}
	child, err := os.StartProcess(path, []string{path, "client-io"},
		&os.ProcAttr{Files: []*os.File{in, null, null}, Env: os.Environ()})
	in.Close()
	null.Close()
	if err != nil {
		out.Close()
		return // the daemon stops waiting and reports that files cannot be accessed
	}
	go func() { // ends with the child; until then its stdin stays open
		_, _ = out.WriteString(token + "\n")
		_, _ = child.Wait()
		out.Close()
	}()
}

// inProcess returns the command line of a daemon that runs inside the agent's own sandbox.
func inProcess(toolset string) []string {
	argv := []string{"serviced", "mcp", "--in-process"}
	if toolset != rendezvous.ToolsetAll {
		argv = append(argv, "--tools", toolset)
	}
	return argv
}

// readable reports whether a daemon in this process could use the state directory.
func readable(dir string) bool {
	_, err := os.Lstat(dir + string(os.PathSeparator) + ".")
	return !errors.Is(err, os.ErrPermission)
}
