// Package supervised connects a long-running program to the service manager that started it. The program stops at the
// manager's request, reports its state, and writes its log where the manager collects logs. Without a service manager,
// the package has no effect.
package supervised

import (
	"context"
	"io"
	"os"
	"runtime"

	"github.com/kardianos/service"
)

// Run calls f and returns its error. It cancels f's context when ctx ends, and when the Windows Service Control
// Manager stops the service name or shuts down. Other service managers send signals, which the caller must handle
// through ctx.
func Run(ctx context.Context, name string, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if runtime.GOOS == "windows" && service.Interactive() {
		return f(ctx) // kardianos/service would wait for Ctrl-C after f has returned
	}
	p := &program{ctx: ctx, cancel: cancel, f: f, done: make(chan struct{})}
	s, err := service.New(p, &service.Config{Name: name, Option: service.KeyValue{"RunWait": func() { <-p.done }}})
	if err != nil {
		return f(ctx) // kardianos/service supports no service manager on this system
	}
	p.exit = func() {
		if log, err := s.SystemLogger(nil); err == nil && p.err != nil {
			_ = log.Error(p.err)
		}
		os.Exit(1)
	}
	return s.Run()
}

// program is the service.Interface of one Run.
type program struct {
	ctx    context.Context
	cancel context.CancelFunc
	f      func(context.Context) error
	done   chan struct{} // closed when f has returned err
	err    error
	exit   func() // exits a process of the Service Control Manager
}

// Start calls f in the background, as kardianos/service requires.
func (p *program) Start(service.Service) error {
	go func() {
		p.err = p.f(p.ctx)
		close(p.done)
		if p.ctx.Err() == nil && runtime.GOOS == "windows" {
			p.exit() // the manager restarts a process that exits before Stop is called
		}
	}()
	return nil
}

// Stop ends f and returns its error.
func (p *program) Stop(service.Service) error {
	p.cancel()
	<-p.done
	return p.err
}

// Output returns the writer for the program's log. This is w, or the event log of the service name if the Windows
// Service Control Manager started the process, which then has no standard error.
func Output(name string, w io.Writer) io.Writer {
	if runtime.GOOS != "windows" || service.Interactive() {
		return w
	}
	s, err := service.New(&program{}, &service.Config{Name: name})
	if err != nil {
		return w
	}
	log, err := s.SystemLogger(nil)
	if err != nil {
		return w
	}
	return eventLog{log}
}

// eventLog writes each line as an event.
type eventLog struct{ log service.Logger }

func (e eventLog) Write(p []byte) (int, error) {
	if err := e.log.Info(string(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
