package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/service-dev/service/ctl/internal/client"
)

// child is the app under test.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how it ended; valid after done is closed
	once sync.Once
}

// endWait is how long an app may take to end after it was asked to.
const endWait = 3 * time.Second

// startApp starts the app with the session's address in its environment, never with the secret itself.
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
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // end stops it with everything that it started
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, r.output, r.output
	cmd.Env = os.Environ()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, "SERVICE_GLASSES_URL="+r.opened.AppEndpoint,
		"SERVICE_GLASSES_SECRET_FILE="+r.opened.AppTokenFile, "SERVICE_GLASSES_TRANSPORT=simulator")
	cmd.WaitDelay = endWait
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, &client.Error{Code: codeNoApp, Message: fmt.Sprintf("starting the app: %v", err),
			FixHint: "check the command after --, or app.command and app.dir of the scenario"}
	}
	c := &child{cmd: cmd, done: make(chan struct{})}
	go func() { // ends with the app; end waits for it
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// end stops the app and everything it started, and waits. It may be called again.
func (c *child) end() {
	c.once.Do(func() {
		askGroup(c.cmd)
		timer := time.NewTimer(endWait)
		defer timer.Stop()
		select {
		case <-c.done:
		case <-timer.C:
		}
		killGroup(c.cmd)
		<-c.done
	})
}

// ended reports whether the app has ended.
func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// failed reports whether the app itself ended with an error. It ignores errors of copying the output, which processes
// that the app started may have kept open. Call it only after done.
func (c *child) failed() bool { return c.cmd.ProcessState == nil || !c.cmd.ProcessState.Success() }

// how describes how the app ended. Call it only after done.
func (c *child) how() string {
	if c.cmd.ProcessState == nil {
		return c.err.Error()
	}
	return c.cmd.ProcessState.String()
}

// maxTail is how much of an app's output is kept, in bytes.
const maxTail = 64 << 10

// outputTail keeps the end of what is written.
type outputTail struct {
	mu   sync.Mutex
	data []byte
	cut  bool
	also io.Writer // gets everything, if it is set
}

// Write implements io.Writer.
func (t *outputTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.also != nil {
		_, _ = t.also.Write(p) // the app must not fail because nobody reads its output any longer
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
