package osservice

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/service-dev/service/internal/problem"
)

const (
	// commandTime is the time limit of one command of a service manager. The command may wait for the daemon to drain.
	commandTime = 90 * time.Second
	// maxOutput is the maximum amount of a command's output that is kept, in bytes.
	maxOutput = 64 << 10
)

// outcome is the result of a command. code is its exit code, or -1 if the command could not be run because of err.
type outcome struct {
	out, errs string
	code      int
	err       error
}

// runner runs a command of the service manager.
type runner func(ctx context.Context, program string, args ...string) outcome

// execute runs a command with English output, without colours or a pager.
func execute(ctx context.Context, program string, args ...string) outcome {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	var out, errs bounded
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=", "SYSTEMD_LOG_LEVEL=warning")
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var exited *exec.ExitError
	switch {
	case ctx.Err() != nil && err != nil:
		return outcome{code: -1, err: context.Cause(ctx)}
	case err == nil || errors.As(err, &exited):
		return outcome{out: out.String(), errs: errs.String(), code: cmd.ProcessState.ExitCode(), err: err}
	}
	return outcome{code: -1, err: err}
}

// message returns the last line of the command's output.
func (o outcome) message() string {
	for _, text := range []string{o.errs, o.out} {
		text = strings.TrimSpace(text)
		if line := strings.TrimSpace(text[strings.LastIndex(text, "\n")+1:]); line != "" {
			return strings.TrimRight(line, ".")
		}
	}
	if o.err != nil {
		return o.err.Error()
	}
	return "no output"
}

// must returns an error with the given fix hint unless the command succeeded.
func must(o outcome, program, action, hint string) error {
	switch {
	case o.code == 0:
		return nil
	case errors.Is(o.err, exec.ErrNotFound):
		return problem.New(problem.CodeNoServiceManager, program+" was not found", onDemand)
	}
	return problem.New(problem.CodeServiceManagerRefused, program+" "+action+": "+o.message(), hint)
}

// bounded is a buffer that keeps the first maxOutput bytes.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if free := maxOutput - b.Len(); free > 0 {
		_, _ = b.Buffer.Write(p[:min(free, len(p))])
	}
	return len(p), nil
}
