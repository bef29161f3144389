package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/term"
)

func (a *app) telemetry() *cobra.Command {
	cmd := &cobra.Command{
		Use: "telemetry", Short: "See and erase what is recorded about the use of the service", Args: cobra.NoArgs, RunE: help,
		Long: "Usage events are anonymous. service-mcp accept-privacy and decline-privacy decide whether they are uploaded;\n" +
			"SERVICE_TELEMETRY=0 and DO_NOT_TRACK=1 stop it for one shell.",
	}
	var follow bool
	tail := &cobra.Command{
		Use: "tail", Short: "Print the events that were recorded on this machine", Args: cobra.NoArgs,
		Long: "One event a line, whether it is uploaded or not. With --json each line is the event as it is uploaded.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTelemetry(cmd.Context(), func(_ *client.Client, t *client.Telemetry) error {
				return a.tailTelemetry(cmd.Context(), t.GetLogFile(), follow)
			})
		},
	}
	tail.Flags().BoolVarP(&follow, "follow", "f", false, "go on until Ctrl-C")
	cmd.AddCommand(&cobra.Command{
		Use: "status", Short: "Show what is uploaded where, and which switch decides", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTelemetry(cmd.Context(), func(_ *client.Client, t *client.Telemetry) error { return a.telemetryStatus(t) })
		},
	}, tail, &cobra.Command{
		Use: "purge", Short: "Erase what was recorded, here and at every backend that was sent any", Args: cobra.NoArgs,
		Long: "Erases the local log, what waits for its upload, and what backends hold of this install id: the one that is set up,\n" +
			"and each that events were sent to before.\n" +
			"Exit code: 0 all is erased, 2 a backend could not be asked; it is named, and asked again the next time.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.purgeTelemetry(cmd.Context()) },
	})
	return cmd
}

func (a *app) withTelemetry(ctx context.Context, act func(*client.Client, *client.Telemetry) error) error {
	c, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	t, err := c.Telemetry(ctx)
	if err != nil {
		return err
	}
	return act(c, t)
}

func (a *app) telemetryStatus(t *client.Telemetry) error {
	consent := t.GetConsent()
	if a.json {
		return a.JSON(map[string]any{
			"uploadAllowed": consent.GetUploadAllowed(), "decidedBy": consent.GetDecidedBy(), "consent": consent.GetState(),
			"backendUrl": t.GetBackendUrl(), "logFile": t.GetLogFile(), "noticeShownAt": stampMs(t.GetNoticeMs()),
			"waiting": t.GetWaiting(), "spoolBytes": t.GetSpoolBytes(), "spoolCap": t.GetSpoolCap(), "dropped": t.GetDropped(),
			"uploadedAt": stampMs(t.GetUploadedMs()), "uploaded": t.GetUploaded(), "lastError": t.GetLastError(), "nextTryAt": stampMs(t.GetNextMs()),
		})
	}
	a.Telemetry(term.Telemetry{
		Consent: term.Consent{State: consent.GetState(), Upload: consent.GetUploadAllowed(), By: consent.GetDecidedBy()},
		LogFile: t.GetLogFile(), BackendURL: t.GetBackendUrl(), LastError: t.GetLastError(),
		Notice: timeMs(t.GetNoticeMs()), Uploaded: timeMs(t.GetUploadedMs()), Next: timeMs(t.GetNextMs()),
		Waiting: int(t.GetWaiting()), Count: int(t.GetUploaded()), Bytes: t.GetSpoolBytes(), Cap: t.GetSpoolCap(), Dropped: t.GetDropped(),
	}, time.Now())
	return nil
}

// timeMs is the zero time for 0.
func timeMs(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// stampMs is nil, which is written as null, for 0.
func stampMs(ms int64) any {
	if ms == 0 {
		return nil
	}
	return timeMs(ms).UTC().Format(time.RFC3339Nano)
}

func (a *app) purgeTelemetry(ctx context.Context) error {
	c, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	p, err := c.PurgeTelemetry(ctx)
	if err != nil {
		return err
	}
	if a.json {
		err = a.JSON(map[string]any{
			"local": p.GetLocal(), "waiting": p.GetWaiting(), "backend": p.GetBackend(), "backendDeleted": p.GetBackendDeleted(), "detail": p.GetDetail(),
		})
	} else {
		now, _ := c.Telemetry(ctx) // where that fails, one more hint is shown
		a.Purged(term.Purged{
			Local: p.GetLocal(), Waiting: p.GetWaiting(), Deleted: p.GetBackendDeleted(), Backend: p.GetBackend(), Detail: p.GetDetail(),
			Declined: now.GetConsent().GetState() == "declined",
		})
	}
	if err == nil && p.GetBackend() == "failed" {
		return exit(exitUnknown)
	}
	return err
}

// followEvery is how often a followed log is looked at.
const followEvery = 200 * time.Millisecond

// olderLog ends the name of the log's older generation.
const olderLog = ".old"

// tailTelemetry prints the log, its older generation first. The daemon sets it aside when it is long and deletes it when
// told to; a follower goes on with the new one.
func (a *app) tailTelemetry(ctx context.Context, path string, follow bool) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	var older, at position
	none := older.read(path+olderLog, a.telemetryLine)
	if none != nil && !errors.Is(none, fs.ErrNotExist) {
		return unreadableLog(none)
	}
	for first := true; ; first = false {
		err := at.read(path, a.telemetryLine)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if first && none != nil {
				a.NoTelemetry(path)
			}
		case err != nil:
			return unreadableLog(err)
		}
		if !follow {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// unreadableLog gives an error of the file system its next step; others pass.
func unreadableLog(err error) error {
	var p *fs.PathError
	if !errors.As(err, &p) {
		return err
	}
	return &client.Error{Code: "log_unreadable", Message: err.Error(), FixHint: "see who owns " + p.Path + "; `servicectl telemetry purge` deletes it"}
}

func (a *app) telemetryLine(line []byte) error {
	if a.json && json.Valid(line) {
		return a.Line(json.RawMessage(line))
	}
	a.TelemetryEvent(line)
	return nil
}

// position is how far a file was read.
type position struct {
	file   os.FileInfo
	offset int64
}

// read hears every whole line that came since the last time.
func (p *position) read(path string, hear func(line []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if p.file == nil || !os.SameFile(p.file, info) || info.Size() < p.offset {
		p.offset = 0
	}
	p.file = info
	if _, err := f.Seek(p.offset, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // what follows the last newline is not whole yet
		}
		if err != nil {
			return err
		}
		p.offset += int64(len(line))
		if err := hear(line[:len(line)-1]); err != nil {
			return err
		}
	}
}
