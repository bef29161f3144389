// Command serviced is the daemon: one for each person and state directory. It is a door; everything happens in
// daemon/internal/app.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/service-dev/service/daemon/internal/app"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/osservice"
	"github.com/service-dev/service/proto/buildinfo"
	"github.com/service-dev/service/proto/rendezvous"
)

const usage = `usage: serviced <command>

  run [--managed]     serve this person's agents and CLI until stopped; --managed for service managers (never idle)
  service ACTION      install, uninstall, start, stop or status of this program as an OS service, told in JSON for servicectl
  mcp --in-process [--tools local]
                      serve one agent on standard input and output, where a sandbox forbids sockets
  version             print the version

SERVICE_CONFIG_DIR names the state directory (default ~/.service).
`

func main() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// Main runs one command. Exit codes: 0 done, 1 it went wrong, 2 it was called wrongly or config.yaml cannot
// be used.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	switch cmd, rest := args[0], args[1:]; {
	case cmd == "run" && len(rest) == 0:
		return run(false, stderr)
	case cmd == "run" && len(rest) == 1 && rest[0] == "--managed":
		return run(true, stderr)
	case cmd == "service" && len(rest) == 1 && slices.Contains(osservice.Actions, rest[0]):
		return control(rest[0], stdout, stderr)
	case cmd == "mcp" && len(rest) == 1 && rest[0] == "--in-process":
		return inProcess(rendezvous.ToolsetAll, stdin, stdout, stderr)
	case cmd == "mcp" && len(rest) == 3 && rest[0] == "--in-process" && rest[1] == "--tools" && rendezvous.Toolset(rest[2]):
		return inProcess(rest[2], stdin, stdout, stderr)
	case (cmd == "version" || cmd == "--version") && len(rest) == 0:
		fmt.Fprintf(stdout, "serviced %s (%s, built %s)\n", buildinfo.Version, buildinfo.Commit, buildinfo.BuiltAt)
		return 0
	case (cmd == "help" || cmd == "--help" || cmd == "-h") && len(rest) == 0:
		fmt.Fprint(stdout, usage)
		return 0
	}
	fmt.Fprintf(stderr, "serviced: unknown command or flag: %q\n\n%s", args, usage)
	return 2
}

func run(managed bool, stderr io.Writer) int {
	// A daemon that a client started outlives that client's terminal and must not depend on it.
	_, started := os.LookupEnv(rendezvous.ReadyVar)
	foreground := !started && (!managed || !unbounded(stderr))
	notify := osservice.NewNotifier()
	sockets, err := osservice.Inherited()
	if err != nil {
		return exit(err, stderr)
	}
	err = osservice.Run(context.Background(), managed, func(ctx context.Context) error {
		return app.Run(ctx, app.Options{Managed: managed, Foreground: foreground, Stderr: stderr, Sockets: sockets, Notify: notify})
	})
	return exit(err, stderr)
}

// unbounded tells that w is a plain file, which nobody sets aside: launchd's, for the last words only.
func unbounded(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// control does what servicectl asks of the service manager. Its answer is one JSON object: a report, or an error with its
// next step.
func control(action string, stdout, stderr io.Writer) int {
	var report osservice.Report
	err := osservice.Run(context.Background(), false, func(ctx context.Context) (err error) {
		report, err = osservice.Control(ctx, action)
		return err
	})
	var told *osservice.Error
	switch {
	case errors.As(err, &told):
		_ = json.NewEncoder(stdout).Encode(map[string]any{
			"error": map[string]string{"code": told.Code, "message": told.Message, "fixHint": told.FixHint},
		})
		return 1
	case err != nil:
		return exit(err, stderr)
	}
	if err := json.NewEncoder(stdout).Encode(map[string]any{"report": report}); err != nil {
		return exit(err, stderr)
	}
	return 0
}

// inProcess takes standard input away from the programs that are started meanwhile: its bytes are the agent's.
func inProcess(toolset string, stdin io.Reader, stdout, stderr io.Writer) int {
	if null, err := os.Open(os.DevNull); err == nil {
		os.Stdin = null
	}
	err := osservice.Run(context.Background(), false, func(ctx context.Context) error {
		return app.InProcess(ctx, app.Options{Stderr: stderr, Toolset: toolset}, stdin, stdout)
	})
	if errors.Is(err, context.Canceled) {
		return 0
	}
	return exit(err, stderr)
}

func exit(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "serviced: %v\n", err)
	var setting *config.Error
	if errors.As(err, &setting) {
		return 2
	}
	return 1
}
