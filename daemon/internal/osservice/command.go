package osservice

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// commandTime bounds one command of a service manager: a stop waits for the drain.
	commandTime = 90 * time.Second
	// maxOutput bounds in bytes what is kept of a command's words.
	maxOutput = 64 << 10
)

// outcome is what a command said. code is its exit code, or -1 when it could not be run; then err says why.
type outcome struct {
	out, errs string
	code      int
	err       error
}

// runner runs a command of the service manager.
type runner func(ctx context.Context, program string, args ...string) outcome

// execute runs a command in plain English and without colours or a pager.
func execute(ctx context.Context, program string, args ...string) outcome {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	var out, errs bounded
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=", "SYSTEMD_LOG_LEVEL=warning")
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return outcome{out: out.String(), errs: errs.String()}
	case ctx.Err() != nil:
		return outcome{code: -1, err: context.Cause(ctx)}
	case errors.As(err, &ended):
		return outcome{out: out.String(), errs: errs.String(), code: ended.ExitCode(), err: err}
	}
	return outcome{code: -1, err: err}
}

// said is the last line of a command's complaint.
func (o outcome) said() string {
	for _, text := range []string{o.errs, o.out} {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if line := strings.TrimSpace(lines[len(lines)-1]); line != "" {
			return strings.TrimRight(line, ".")
		}
	}
	if o.err != nil {
		return o.err.Error()
	}
	return "it said nothing"
}

// bounded keeps the first maxOutput bytes.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxOutput - b.Len(); room > 0 {
		_, _ = b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
