package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/problem"
)

// RecordRequest requests a scenario from a session's log.
type RecordRequest struct {
	// Files are the files of the client, which writes the recording.
	Files     clientio.Files
	Target    backend.Target
	SessionID string
	// Name is the scenario's name; if empty, the name of the file is used.
	Name string
	// Path is the absolute path of the file to write. Pictures and media are written to directories next to it.
	Path string
	// Since excludes the rows up to this cursor. The recording begins when the first app attached after the cursor or,
	// if there is none, when the last app attached before it.
	Since int64
}

// Recording is the result of Record.
type Recording struct {
	Name       string `json:"name"`
	Path       string `json:"path"`
	DurationMs int64  `json:"durationMs"`
	// Steps, Requests, Pictures and Media are counts.
	Steps    int `json:"steps"`
	Requests int `json:"requests"`
	Pictures int `json:"pictures"`
	Media    int `json:"media"`
	// Claims is the number of steps that assert a condition that was true while the session was recorded.
	Claims int `json:"claims"`
	// Notes describes everything that could not be recorded, and what the file contains that may be private.
	Notes []string `json:"notes"`
}

// Record writes a session's log as a scenario. Changes of the glasses become steps. Later runs are compared with the
// app's commands and events. It returns a *problem.Error on failure.
func (r *Runner) Record(ctx context.Context, req RecordRequest) (Recording, error) {
	if req.Name == "" {
		req.Name = strings.TrimSuffix(filepath.Base(req.Path), filepath.Ext(req.Path))
	}
	s, err := r.sessions.Get(ctx, req.Target, req.SessionID)
	if err != nil {
		return Recording{}, err
	}
	x := &run{r: r, req: Request{Target: req.Target, SessionID: req.SessionID}, virtual: s.Clock == backend.ClockVirtual,
		now: s.NowMs}
	if err := x.fetch(ctx, 0); err != nil {
		return Recording{}, err
	}
	rows := span(x.rows, req.Since)
	if len(rows) == 0 {
		return Recording{}, &problem.Error{Code: problem.CodeNotFound,
			Message: "the session's log contains no rows to record",
			FixHint: "Let the app attach and do something, then record; or pass a smaller since."}
	}
	rec := &recorder{base: rows[0].At, model: modelBefore(x.rows, rows[0].Seq, s.DeviceModel), virtual: x.virtual}
	noted, whole := r.journal.of(req.SessionID, rows[0].Seq)
	rec.steps(rows, noted)
	end := rows[len(rows)-1].At
	if x.virtual {
		end = max(end, s.NowMs)
	}
	rec.pass(end)
	omitted := rec.finish()
	if !whole {
		omitted = append(omitted, fmt.Sprintf("omitted: the oldest expectations, because the service keeps the last %d of a "+
			"session and %d MB", maxNotes, maxNoteBytes>>20))
	}
	sc := scenario.Scenario{Scenario: scenario.Version, Name: req.Name, DeviceModel: rec.model,
		Clock: backend.ClockVirtual, Steps: rec.list}
	if script := r.sessions.AssistantScript(req.SessionID); script != nil {
		sc.Assistant = &scenario.Assistant{Rules: script.Rules}
		profile, isKnown := r.sessions.MemoryAt(req.SessionID, rows[0].Seq)
		sc.Memory = profile
		if profile != "" {
			omitted = append(omitted, "contains what the assistant knew about the wearer (memory): keep the file private, "+
				"or replace it")
		}
		if !isKnown && script.Remembers() {
			omitted = append(omitted, "omitted: what the assistant knew about the wearer at the beginning, because the "+
				"daemon has been restarted since or many apps have attached; add it as memory")
		}
	}
	sc.Recorded = &scenario.Recorded{Clock: s.Clock, DurationMs: end - rec.base, Trace: traceOf(rows, rec.base),
		Pictures: []scenario.Picture{}}
	_, sc.Recorded.AppLeft = leftAtEnd(rows)
	out := Recording{Name: req.Name, Path: req.Path, DurationMs: sc.Recorded.DurationMs, Steps: len(sc.Steps),
		Requests: len(sc.Recorded.Trace), Claims: rec.claims,
		Notes: append(notesOf(x.rows, rows[0].Seq), omitted...)}
	if err := r.write(ctx, req, &sc, rows, rec, &out); err != nil {
		return Recording{}, &problem.Error{Code: problem.CodeStateUnwritable,
			Message: "write the recording: " + err.Error(),
			FixHint: "Pass a writable path."}
	}
	return out, nil
}

// span returns the part of a log to record, which begins when the app attaches.
func span(rows []glasses.Event, since int64) []glasses.Event {
	first := slices.IndexFunc(rows, func(e glasses.Event) bool {
		return e.Seq > since &&
			e.Type == glasses.RowAppAttached
	})
	if first < 0 {
		if lastAttached(rows) < 0 {
			return nil // no app ever attached
		}
		// The app attached before the cursor. A run of another build can begin only at that row.
		first = lastAttached(rows)
	}
	return rows[first:]
}

// modelBefore returns the device model before the row seq. now is the session's current model, which applies if the
// model does not change in the log.
func modelBefore(rows []glasses.Event, seq int64, now string) string {
	model := ""
	for _, e := range rows {
		if e.Type != glasses.TypeDevice {
			continue
		}
		var p glasses.DeviceChange
		if json.Unmarshal(e.Payload, &p) != nil {
			continue
		}
		if e.Seq >= seq {
			if model == "" {
				return glasses.DefaultDeviceModel // no row mentions the model
			}
			break
		}
		model = p.DeviceModel.ID
	}
	if model == "" {
		return now
	}
	return model
}

// notesOf describes changes of the glasses before the recording. A run does not repeat them: it begins with new
// glasses, whose state the app receives when it attaches.
func notesOf(rows []glasses.Event, first int64) []string {
	notes := []string{}
	for _, e := range rows {
		if e.Seq >= first || e.Sender != glasses.SenderGlasses || e.Type == glasses.TypeDevice {
			continue
		}
		if s, ok := stimulus(e); ok && (s.State != nil || s.Fault != nil) {
			notes = append(notes, "the glasses were changed before the app attached ("+e.Type+"): a run begins with fresh "+
				"glasses; start the app first, then change them")
			break
		}
	}
	return notes
}

// write writes the recording and its files. It writes the scenario last, so that a scenario never exists without its
// files.
func (r *Runner) write(ctx context.Context, req RecordRequest, sc *scenario.Scenario, rows []glasses.Event,
	rec *recorder, out *Recording) error {
	dir := filepath.Dir(req.Path)
	shown := panels(rows, rec.base, rec.model, req.SessionID)
	sc.Fonts = fontsOf(shown)
	for _, p := range shown {
		data := p.png()
		sc.Recorded.Pictures = append(sc.Recorded.Pictures, scenario.Picture{At: p.at, SHA256: sum(data)})
		if err := writeFile(ctx, req.Files, dir, "pictures", sum(data)+".png", data); err != nil {
			return err
		}
	}
	out.Pictures = len(sc.Recorded.Pictures)
	kept, err := r.writeMedia(ctx, req, dir, rows, out)
	if err != nil {
		return err
	}
	for name, words := range rec.words {
		if err := writeFile(ctx, req.Files, dir, mediaFolder, name, words); err != nil {
			return err
		}
	}
	sc.Recorded.Media = kept
	sc.Steps = slices.DeleteFunc(sc.Steps, func(s scenario.Step) bool {
		return s.Camera != nil && !slices.Contains(kept, filepath.Base(*s.Camera))
	})
	sc.Steps = joined(sc.Steps)
	out.Steps, out.Media = len(sc.Steps), len(kept)+len(rec.words)
	data, err := sc.Encode()
	if err != nil {
		return err
	}
	if _, err := scenario.Parse(data); err != nil {
		return err // e.g. too long for a scenario
	}
	before, missing := Load(ctx, req.Files, req.Path)
	if err := req.Files.Replace(ctx, req.Path, data, 0o600, 0o700); err != nil {
		return err
	}
	if missing == nil && before.Recorded != nil {
		removeOldPictures(ctx, req.Files, req.Path, before.Recorded.Pictures, sc.Recorded.Pictures)
	}
	return nil
}

// writeMedia writes the camera's pictures and clips, each named by its hash, and returns their names.
func (r *Runner) writeMedia(ctx context.Context, req RecordRequest, dir string, rows []glasses.Event,
	out *Recording) (kept []string, err error) {
	for _, e := range rows {
		res, err := glasses.ParseResult(e.Payload)
		if e.Kind != glasses.KindResult || err != nil || res.Media == nil {
			continue
		}
		name, body, err := r.sessions.Media(req.SessionID, res.Media.SHA256)
		if err != nil {
			out.Notes = append(out.Notes,
				"media "+res.Media.SHA256+" is not kept: a run takes the simulator's own pictures instead")
			continue
		}
		if slices.Contains(kept, name) {
			continue
		}
		if err := writeFile(ctx, req.Files, dir, mediaFolder, name, body); err != nil {
			return nil, err
		}
		kept = append(kept, name)
	}
	return kept, nil
}

func writeFile(ctx context.Context, files clientio.Files, dir, folder, name string, data []byte) error {
	return files.Replace(ctx, filepath.Join(dir, folder, name), data, 0o600, 0o700)
}
