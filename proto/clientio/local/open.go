package local

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/service-dev/service/proto/clientio"
)

const (
	// failWait is how long Open waits for a command that fails at once; a good one has handed over or goes on by then.
	failWait = 300 * time.Millisecond
	// hangWait is after how long a command that hangs is killed.
	hangWait = 60 * time.Second
	// maxRunning bounds the commands that run at once.
	maxRunning = 8
)

// result reports whether a browser was asked to open the page; reason is one of clientio's, empty when opened.
type result struct {
	opened bool
	reason string
}

// open asks the browser to show a page. It returns within a moment, whatever the command does. A command that still runs
// when this process ends is left alone: a browser may be starting behind it.
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
	go func() { // ends with the command, or hangWait later
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

// isPage lets only web addresses with a host through: a file, a script or an option must never reach the command.
func isPage(page string) bool {
	if len(page) > 4096 || strings.ContainsFunc(page, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return false
	}
	u, err := url.Parse(page)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil
}

// withEnvironment gives the command those variables of this process that a browser needs. An agent's environment holds
// keys that are nobody else's business.
func withEnvironment(cmd *exec.Cmd, names []string) *exec.Cmd {
	cmd.Env = []string{}
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return cmd
}
