// Command service-mcp is what a coding agent spawns: without arguments, or with --tools NAME, it carries MCP between its stdio and the
// user's daemon, with arguments it is the person's command line, run by servicectl.
package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/service-dev/service/ctl/internal/pump"
	"github.com/service-dev/service/ctl/internal/reach"
	"github.com/service-dev/service/proto/buildinfo"
	"github.com/service-dev/service/proto/rendezvous"
)

func main() {
	if program, ok := reach.IsStarter(os.Args); ok {
		os.Exit(reach.StartDetached(program))
	}
	toolset, ok := toolsetOf(os.Args[1:])
	if !ok {
		os.Exit(run("servicectl", append([]string{"service-mcp"}, os.Args[1:]...)))
	}
	os.Exit(serve(toolset))
}

// toolsetOf reads the arguments with which an agent starts the shim: none, or --tools NAME. ok is false for a person's.
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

// run replaces this process by a program of ours; it returns only when that is impossible.
func run(name string, argv []string) int {
	path, err := reach.Beside(name)
	if err == nil {
		err = reach.Exec(path, argv)
	}
	os.Stderr.WriteString("service-mcp: " + err.Error() + "\n")
	return 2
}

func serve(toolset string) int {
	ctx, parent := context.Background(), os.Getppid()
	daemon, findErr := reach.Find()
	cwd := reach.WorkingDir()
	p := pump.New(pump.Options{
		In: os.Stdin, Out: os.Stdout, HalfClose: reach.HalfClose, ClientIO: startClientIO,
		Orphaned: func() { reach.AwaitParent(parent) },
		Starting: func() bool { return !daemon.Held() },
		Running:  func() bool { return findErr == nil && daemon.Held() },
		Explain:  func(err error) *pump.Failure { return explain(daemon, err) },
		Hello:    pump.Hello{Client: "service-mcp", Version: buildinfo.Version, Cwd: cwd, Env: rendezvous.Environ(), Toolset: toolset},
		Connect: func(ctx context.Context) (reach.Conn, error) {
			if findErr != nil {
				return nil, findErr
			}
			return daemon.Connect(ctx, daemon.Paths.MCP)
		},
	})
	var sandbox *reach.SandboxError
	if err := p.Open(ctx); errors.As(err, &sandbox) && readable(daemon.Paths.Dir) {
		// Nothing was read from stdin yet, so another program can take over the conversation.
		if code := run("serviced", inProcess(toolset)); code != 2 {
			return code
		}
	}
	if err := p.Run(ctx); err != nil {
		return 1
	}
	return 0
}

// startClientIO runs `servicectl client-io`, which opens pages and reads and writes files for the daemon with the agent's
// own rights and environment. The token goes over its stdin, whose end tells it that this process is gone.
func startClientIO(token string) {
	path, err := reach.Beside("servicectl")
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
	child, err := os.StartProcess(path, []string{path, "client-io"}, &os.ProcAttr{Files: []*os.File{in, null, null}, Env: os.Environ()})
	in.Close()
	null.Close()
	if err != nil {
		out.Close()
		return // the daemon's wait ends, and it says that nothing can be read or written
	}
	go func() { // ends with the child; keeps its stdin open until then
		_, _ = out.WriteString(token + "\n")
		_, _ = child.Wait()
		out.Close()
	}()
}

// inProcess is the command line of a daemon in the agent's own sandbox.
func inProcess(toolset string) []string {
	argv := []string{"serviced", "mcp", "--in-process"}
	if toolset != rendezvous.ToolsetAll {
		argv = append(argv, "--tools", toolset)
	}
	return argv
}

// readable is whether a daemon in this process could use the state directory at all.
func readable(dir string) bool {
	_, err := os.Lstat(dir + string(os.PathSeparator) + ".")
	return !errors.Is(err, os.ErrPermission)
}

// explain puts the reason why there is no daemon into words for the agent.
func explain(daemon reach.Daemon, err error) *pump.Failure {
	var sandbox *reach.SandboxError
	var unsafe *reach.UnsafeError
	var start *reach.StartError
	var silent *reach.NotRespondingError
	if errors.Is(err, pump.ErrSilent) {
		silent = daemon.NotResponding()
	}
	switch {
	case silent != nil || errors.As(err, &silent):
		return &pump.Failure{Code: "daemon_not_responding", Message: silent.Error(), Retryable: true, FixHint: silent.Fix()}
	case errors.As(err, &sandbox):
		return &pump.Failure{Code: "sandbox_blocked", Message: sandbox.Error(), FixHint: sandbox.Setting()}
	case errors.As(err, &unsafe):
		return &pump.Failure{Code: "unsafe_directory", Message: unsafe.Error(), FixHint: unsafe.Fix}
	case errors.As(err, &start) && start.Log != "":
		return &pump.Failure{Code: "daemon_unavailable", Message: start.Error(), Retryable: true, FixHint: "look into " + start.Log + ", then call again"}
	}
	return nil
}
