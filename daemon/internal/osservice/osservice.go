// Package osservice is all that the daemon has to do with the system's service manager: it runs the same program in a
// terminal and under the manager, takes over the sockets of systemd and tells it how the daemon is, and installs,
// starts, stops and removes the service. It knows nothing of what runs.
//
// The service is optional: clients start a daemon on demand, and the service only keeps its sockets (systemd) or itself
// (launchd, Windows) there from login on. No library does it: those that install services write one systemd unit without
// sockets, load launchd agents by commands that Apple replaced, and on Windows make and speak to services, which only an
// administrator may install, while here a task of the person's logon starts an ordinary program. So the systemd units,
// the launchd agent and the Windows task are our own, each made by a pure function.
package osservice

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Name is what the service manager calls the daemon.
const Name = "serviced"

// Run runs f until it returns. Its context ends at SIGINT or SIGTERM, which is how service managers speak too; a second
// signal ends the process at once. managed tells that a service manager started the process.
func Run(ctx context.Context, managed bool, f func(context.Context) error) error {
	if managed {
		leaveConsole()
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	release := context.AfterFunc(ctx, stop)
	defer release()
	return f(ctx)
}
