package session

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/service-dev/service/ctl/internal/procgroup"
	"github.com/service-dev/service/internal/problem"
)

// child is the app under test.
type child struct {
	cmd  *exec.Cmd
	mark string        // assignment in the environment of every process that the app started
	done chan struct{} // closed when the app has exited
	err  error         // result of the process; valid after done is closed
	once sync.Once
}

// endWait is how long an app may take to exit after it was asked to.
const endWait = 3 * time.Second

// runVariable is the variable by which a run finds the processes that its app started. Its value differs
// for each run.
const runVariable = "SERVICE_SESSION_RUN"

// startApp starts the app with the session's address, but never the secret itself, in its environment.
func (r *scenarioRun) startApp() (*child, error) {
	command, dir, env := r.command, "", map[string]string{}
	if len(command) == 0 {
		command = r.scenario.App.Command
		dir = r.beside(".")
	}
	if app := r.scenario.App; app != nil {
		env = app.Env
		if app.Dir != "" {
			dir = r.beside(app.Dir)
		}
	}
	if r.output == nil {
		r.output = &outputTail{}
	}
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // end stops it and everything that it started
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, r.output, r.output
	cmd.Env = os.Environ()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, "SERVICE_GLASSES_URL="+r.opened.AppEndpoint,
		"SERVICE_GLASSES_SECRET_FILE="+r.opened.AppTokenFile, "SERVICE_GLASSES_TRANSPORT=simulator")
	cmd.WaitDelay = endWait
	mark := runVariable + "=" + rand.Text()
	cmd.Env = append(cmd.Env, mark)
	procgroup.Separate(cmd)
	if err := cmd.Start(); err != nil {
		return nil, &problem.Error{Code: problem.CodeNoApp, Message: fmt.Sprintf("start the app: %v", err),
			FixHint: "Check the command after --, or app.command and app.dir of the scenario."}
	}
	c := &child{cmd: cmd, mark: mark, done: make(chan struct{})}
	go func() { // ends when the app exits; end waits for it
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// end stops the app and everything it started, and waits for the app. It may be called more than once.
func (c *child) end() {
	c.once.Do(func() {
		procgroup.Terminate(c.cmd)
		left := newStrays(c.mark, c.cmd.Process.Pid)
		left.ask()
		late := time.Now().Add(endWait)
		timer := time.NewTimer(endWait)
		defer timer.Stop()
		select {
		case <-c.done:
		case <-timer.C:
		}
		procgroup.Kill(c.cmd)
		left.killAfter(late) // done waits for the app's output to end, and stray processes may hold it open
		<-c.done
	})
}

// ended reports whether the app has exited.
func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// failed reports whether the app itself exited with an error. It ignores errors of copying the output, which the app's
// own child processes may have kept open. Call it only after done is closed.
func (c *child) failed() bool { return c.cmd.ProcessState == nil || !c.cmd.ProcessState.Success() }

// how describes how the app exited. Call it only after done is closed.
func (c *child) how() string {
	if c.cmd.ProcessState == nil {
		return c.err.Error()
	}
	return c.cmd.ProcessState.String()
}

// maxTail is the number of bytes of an app's output that are kept.
const maxTail = 64 << 10

// outputTail keeps the last bytes written to it.
type outputTail struct {
	mu   sync.Mutex
	data []byte
	cut  bool
	also io.Writer // if set, receives a copy of all output
}

// Write implements io.Writer.
func (t *outputTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.also != nil {
		_, _ = t.also.Write(p) // the app must not fail because its output is not read
	}
	t.data = append(t.data, p...)
	if over := len(t.data) - maxTail; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
		t.cut = true
	}
	return len(p), nil
}

func (t *outputTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		return "…" + string(t.data)
	}
	return string(t.data)
}
