// Command serviced is the daemon. It runs once for each user and state directory. Package daemon/internal/app does the
// work. When started under the program name of a shipped adapter, it acts as that adapter.
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
	"github.com/service-dev/service/daemon/internal/osservice"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
	"github.com/service-dev/service/internal/supervised"
)

const usage = `The daemon. Agents and servicectl start it when they need it: run servicectl instead.

Usage:
  serviced COMMAND

Commands:
  run [--managed]     Serve this person's agents and CLI; --managed for service managers (never idle)
  service ACTION      install, uninstall, start, stop or status as an OS service, in JSON
  mcp --in-process [--tools local]
                      Serve one agent on standard input and output, where a sandbox forbids sockets. local
                      shortens the list of tools by those of the account, which still work when called
  version             Show the build

SERVICE_CONFIG_DIR names the state directory (default ~/.service).
`

func main() {
	switch adapter, isAdapter := adapterOf(os.Args[0]); {
	case adapter != nil:
		adapter()
		return
	case isAdapter:
		fmt.Fprintf(os.Stderr, "serviced: there is no adapter for the program name %s\n", os.Args[0])
		os.Exit(2)
	}
	os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Main runs one command and returns its exit code: 0 for success, 1 for a failure, 2 for incorrect usage or an unusable
// config.yaml.
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
	case cmd == "mcp" && len(rest) == 3 && rest[0] == "--in-process" && rest[1] == "--tools" &&
		rendezvous.Toolset(rest[2]):
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
	// A daemon that a client started outlives the client's terminal and must not depend on it.
	_, started := os.LookupEnv(rendezvous.ReadyVar)
	foreground := !started && (!managed || !unbounded(stderr))
	notify := supervised.NewNotifier()
	sockets, err := osservice.Inherited()
	if err != nil {
		return exit(err, stderr)
	}
	err = osservice.Run(context.Background(), managed, func(ctx context.Context) error {
		return app.Run(ctx, app.Options{
			Managed: managed, Foreground: foreground, Stderr: stderr, Sockets: sockets, Notify: notify,
		})
	})
	return exit(err, stderr)
}

// unbounded reports whether w is a plain file that is never rotated, such as launchd's log.
func unbounded(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// control runs an action of the service manager for servicectl. It prints one JSON object: a report, or an error with
// a fix hint.
func control(action string, stdout, stderr io.Writer) int {
	ctx, stop := osservice.WithSignals(context.Background())
	defer stop()
	report, err := osservice.Control(ctx, action)
	var refused *problem.Error
	switch {
	case errors.As(err, &refused):
		_ = json.NewEncoder(stdout).Encode(map[string]any{
			"error": map[string]string{"code": refused.Code, "message": refused.Message, "fixHint": refused.FixHint},
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

// inProcess serves one agent on standard input and output. Child processes do not inherit that input.
func inProcess(toolset string, stdin io.Reader, stdout, stderr io.Writer) int {
	if null, err := os.Open(os.DevNull); err == nil {
		os.Stdin = null
	}
	ctx, stop := osservice.WithSignals(context.Background())
	defer stop()
	err := app.InProcess(ctx, app.Options{Stderr: stderr, Toolset: toolset}, stdin, stdout)
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
	if problem.CodeOf(err) == problem.CodeInvalidConfig {
		return 2
	}
	return 1
}
