//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"time"
)

// terminal runs servicectl repeatedly.
type terminal struct {
	*soak
	name string
	rng  *rand.Rand
}

// work runs commands until ctx ends.
func (c *terminal) work(ctx context.Context) {
	for ctx.Err() == nil {
		switch d := c.rng.IntN(100); {
		case d < 45:
			c.whoami()
		case d < 60:
			c.whoami("--refresh")
		case d < 75:
			c.status()
		case d < 85:
			c.toolCall()
		case d < 93:
			c.plain("plugin list", "plugin", "list")
		default:
			c.doctor()
		}
		pause(ctx, time.Duration(100+c.rng.IntN(300))*time.Millisecond)
	}
}

// run returns the output and exit code of a command, and its error code if it printed one.
func (c *terminal) run(into any, args ...string) (code string, exit int) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	cmd := c.command(ctx, "servicectl", append(args, "--json")...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var ended *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &ended) || cmd.ProcessState.ExitCode() < 0 {
		c.results.report("%s: servicectl %s: %v after %s: %.300s", c.name, strings.Join(args, " "), err, callTimeout,
			errs.String())
		return "", -1
	}
	var told struct {
		Error struct{ Code, Message string }
	}
	if e := json.Unmarshal([]byte(out.String()), &told); e != nil {
		c.results.report("%s: servicectl %s printed no JSON, exit %d: %.300q %.300q", c.name, strings.Join(args, " "),
			cmd.ProcessState.ExitCode(), out.String(), errs.String())
		return "", -1
	}
	if into != nil && told.Error.Code == "" {
		_ = json.Unmarshal([]byte(out.String()), into) // this text has already been parsed successfully
	}
	return told.Error.Code, cmd.ProcessState.ExitCode()
}

// whoami checks the output and exit code of servicectl whoami.
func (c *terminal) whoami(flags ...string) {
	since := time.Now()
	var said struct {
		identity
		Linked *bool
		Detail string
	}
	code, exit := c.run(&said, append([]string{"whoami"}, flags...)...)
	if exit < 0 {
		return
	}
	outcome, want := code, 2
	if code == "" {
		outcome, want = c.linkOutcome(c.name, said.identity), 0
		switch {
		case outcome != ok && outcome != "link:other_account":
			want = 1
		case said.Linked == nil:
			outcome, want = "link:unknown", 2
		}
	}
	c.checkOutcome(c.name, "servicectl whoami", outcome, since, said.Detail)
	if exit != want {
		c.results.report("%s: whoami said %s and exited with %d, want %d", c.name, outcome, exit, want)
	}
}

// unreachable is the outcome of status while the daemon is stopping: it still holds the directory but no longer
// serves.
const unreachable = "unreachable"

// status runs a command that may find no daemon, because it does not start one.
func (c *terminal) status() {
	since := time.Now()
	var said struct {
		Running   *bool
		InstallID string
		Link      struct{ State, AccountID string }
	}
	code, exit := c.run(&said, "status")
	if exit < 0 {
		return
	}
	outcome := code
	switch {
	case code == "daemon_unavailable": // it does not start a daemon, so it may find one that is stopping
		outcome = unreachable
	case code == "" && said.Running != nil && !*said.Running:
		outcome = "not running"
	case code == "":
		outcome = c.linkOutcome(c.name, identity{said.InstallID, said.Link.State, said.Link.AccountID})
	}
	c.checkOutcome(c.name, "servicectl status", outcome, since, "")
}

func (c *terminal) toolCall() {
	since := time.Now()
	var said identity
	code, exit := c.run(&said, "tool", "call", "whoAmI")
	if exit < 0 {
		return
	}
	outcome := code
	if code == "" {
		outcome = c.linkOutcome(c.name, said)
	}
	c.checkOutcome(c.name, "servicectl tool call", outcome, since, "")
}

func (c *terminal) plain(call string, args ...string) {
	since := time.Now()
	if code, exit := c.run(nil, args...); exit >= 0 {
		if code == "" {
			code = ok
		}
		c.checkOutcome(c.name, "servicectl "+call, code, since, fmt.Sprint("exit ", exit))
	}
}

// doctor runs a command that may report the active faults, but must print JSON and exit.
func (c *terminal) doctor() {
	since := time.Now()
	code, exit := c.run(nil, "doctor")
	if exit < 0 {
		return
	}
	if code == "" {
		code = ok
		if exit != 0 {
			code = "something is wrong"
		}
	}
	c.checkOutcome(c.name, "servicectl doctor", code, since, fmt.Sprint("exit ", exit))
}
