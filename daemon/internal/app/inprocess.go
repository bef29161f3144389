package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/clientio/local"
	"github.com/service-dev/service/internal/rendezvous"
)

// InProcess serves one agent on in and out, in a sandbox that forbids the daemon's sockets. It neither acquires the
// lock nor starts adapters, because a daemon may be running at the same time. It returns when in or ctx ends.
func InProcess(ctx context.Context, o Options, in io.Reader, out io.Writer) error {
	paths, err := statePaths(o.Dir)
	if err != nil {
		return err
	}
	if o.Now == nil {
		o.Now = systemClock
	}
	// The sandbox may also forbid writing to the directory; calls that need the directory then fail.
	log := slog.New(slog.NewTextHandler(o.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: redact}))
	p, err := composeInProcess(o, paths, log, &slog.LevelVar{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := p.runBackground(ctx)
	who := caller.Caller{
		Env: rendezvous.Environ(), Cwd: workingDir(), Client: "serviced", Version: buildinfo.Version, Toolset: o.Toolset,
		Agent: rendezvous.AgentID(), IO: local.New(),
	}
	err = p.gate.ServeStdio(ctx, in, out, who)
	cancel()
	late := time.NewTimer(p.stopLimit)
	defer late.Stop()
	select {
	case <-done:
		return err
	case <-late.C:
		return errors.Join(err, p.stuck())
	}
}

// workingDir returns the directory in which the agent started this process, or "" if it is unknown.
func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}
