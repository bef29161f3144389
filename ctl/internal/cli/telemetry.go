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
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/internal/problem"
)

func (a *app) telemetry() *cobra.Command {
	var follow bool
	tail := command.New("tail", "Print the events recorded on this machine",
		"One event per line, whether uploaded or not. With --json each line is the event in the format of the upload.",
		func(ctx context.Context) error {
			return a.WithClient(ctx, func(c *client.Client) error {
				t, err := c.Telemetry(ctx)
				if err != nil {
					return err
				}
				return a.tailTelemetry(ctx, t.LogFile, follow)
			})
		})
	tail.Flags().BoolVarP(&follow, "follow", "f", false, "print new events until Ctrl-C")
	return command.Group("telemetry", "Inspect and erase recorded usage events",
		"Usage events are anonymous. service-mcp accept-privacy and decline-privacy decide whether they are uploaded;\n"+
			"SERVICE_TELEMETRY=0 and DO_NOT_TRACK=1 stop it for one shell.",
		command.Query(a.Program, "status", "Show what is uploaded, where, and which setting decides", "",
			(*client.Client).Telemetry, func(t *client.Telemetry) any { return t }, a.showTelemetry),
		tail,
		command.New("purge", "Erase events here and at every backend that received them",
			"Erases the local log, events waiting for upload, and this install's events at backends: the one that is set "+
				"up,\n"+
				"and each one that received events before.\n"+
				"Exit code: 0 everything is erased, 2 a backend could not be reached; it is listed, and the next purge tries it again.",
			a.purgeTelemetry))
}

func (a *app) showTelemetry(t *client.Telemetry) {
	a.Telemetry(term.Telemetry{
		Consent: term.Consent{State: t.Consent, Upload: t.UploadAllowed, By: t.DecidedBy}, LogFile: t.LogFile,
		BackendURL: t.BackendURL, LastError: t.LastError,
		Notice: moment(t.NoticeShownAt), Uploaded: moment(t.UploadedAt), Next: moment(t.NextTryAt),
		Waiting: t.Waiting, Count: t.Uploaded, Bytes: t.SpoolBytes, Cap: t.SpoolCap, Dropped: t.Dropped,
	}, time.Now())
}

// moment returns the zero time for nil.
func moment(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func (a *app) purgeTelemetry(ctx context.Context) error {
	return a.WithClient(ctx, func(c *client.Client) error {
		p, err := c.PurgeTelemetry(ctx)
		if err != nil {
			return err
		}
		err = a.Print(p, func() {
			now, err := c.Telemetry(ctx) // on failure, an unneeded hint is printed
			a.Purged(term.Purged{
				Local: p.Local, Waiting: p.Waiting, Deleted: p.BackendDeleted, Backend: p.Backend,
				Detail: p.Detail, Declined: err == nil && now.Consent == "declined",
			})
		})
		if err == nil && p.Backend == "failed" {
			return command.ExitUnknown
		}
		return err
	})
}

// followEvery is the interval between two reads of a followed log.
const followEvery = 200 * time.Millisecond

// olderLog is the suffix of the rotated log file.
const olderLog = ".old"

// tailTelemetry prints the log, starting with the rotated file. The daemon rotates long logs and deletes logs on
// request. If follow is set, tailTelemetry then continues with the new file.
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

// unreadableLog adds the next step to a file system error. It returns other errors unchanged.
func unreadableLog(err error) error {
	var p *fs.PathError
	if !errors.As(err, &p) {
		return err
	}
	return &problem.Error{Code: "log_unreadable", Message: err.Error(),
		FixHint: "Check who owns " + p.Path + "; `servicectl telemetry purge` deletes it."}
}

func (a *app) telemetryLine(line []byte) error {
	if a.PrintsJSON && json.Valid(line) {
		return a.Line(json.RawMessage(line))
	}
	a.TelemetryEvent(line)
	return nil
}

// position records how far a file has been read.
type position struct {
	file   os.FileInfo
	offset int64
}

// read calls hear for every complete line added since the last call.
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
			return nil // the text after the last newline is not yet a complete line
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
