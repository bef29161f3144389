package local

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/service-dev/service/internal/clientio"
)

const (
	// failWait is how long open waits for a command to fail. A command that has succeeded or is still running after
	// that is assumed to work.
	failWait = 300 * time.Millisecond
	// hangWait is how long a command may hang before it is killed.
	hangWait = 60 * time.Second
	// maxRunning is the maximum number of concurrent commands.
	maxRunning = 8
)

// result reports whether a browser was started. reason is one of clientio's reasons, or empty if a browser was started.
type result struct {
	opened bool
	reason string
}

// open starts the browser with a page and returns quickly even if the command hangs. If this process exits first, the
// command keeps running, because it may be starting a browser.
func (e *Executor) open(ctx context.Context, page string) result {
	switch {
	case os.Getenv("SERVICE_NO_AUTO_OPEN") == "1":
		return result{reason: clientio.ReasonDisabled}
	case !isPage(page) || !isPlatformSafe(page):
		return result{reason: clientio.ReasonRefused}
	case !hasDesktop(os.Getenv):
		return result{reason: clientio.ReasonNoDesktop}
	}
	select {
	case e.slots <- struct{}{}:
	default:
		return result{reason: clientio.ReasonFailed}
	}
	cmd := platformCommand(page)
	if cmd.Start() != nil {
		<-e.slots
		return result{reason: clientio.ReasonFailed}
	}
	done := make(chan error, 1)
	go func() { // ends with the command, or after hangWait
		kill := time.AfterFunc(hangWait, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		defer func() { <-e.slots }()
		done <- cmd.Wait()
	}()
	timer := time.NewTimer(failWait)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			return result{reason: clientio.ReasonFailed}
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	return result{opened: true}
}

// isPage accepts only web URLs with a host, because a file, a script or an option must never reach the command.
func isPage(page string) bool {
	if len(page) > 4096 || strings.ContainsFunc(page, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return false
	}
	u, err := url.Parse(page)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil
}

// withEnvironment restricts the command to the variables that a browser needs, because an agent's environment contains
// credentials.
func withEnvironment(cmd *exec.Cmd, names []string) *exec.Cmd {
	cmd.Env = []string{}
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return cmd
}
