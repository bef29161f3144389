package scenario

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/scenario"
)

// RecordRequest requests a recording of a session's log.
type RecordRequest struct {
	// Files are the client's: where the recording is written.
	Files     clientio.Files
	Target    backend.Target
	SessionID string
	// Name of the scenario; empty for the file's.
	Name string
	// Path of the file to write, absolute; pictures and media go into folders beside it.
	Path string
	// Since excludes the rows up to this cursor; the recording begins with the next app that attached, or with the last
	// that did before it.
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
	// Notes list what could not be recorded.
	Notes []string `json:"notes"`
}

// Record writes a session's log as a scenario: what happened to the glasses becomes steps, what the app did becomes
// what a run is compared with. Errors are *backend.Problem.
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
		return Recording{}, &backend.Problem{Code: backend.CodeNotFound, Message: "the session's log holds nothing to record",
			FixHint: "let the app attach and do something, then record; or pass a smaller since"}
	}
	rec := &recorder{base: rows[0].At, model: modelBefore(x.rows, rows[0].Seq, s.DeviceModel)}
	rec.steps(rows)
	end := rows[len(rows)-1].At
	if x.virtual {
		end = max(end, s.NowMs)
	}
	rec.pass(end)
	sc := scenario.Scenario{Scenario: scenario.Version, Name: req.Name, DeviceModel: rec.model,
		Clock: backend.ClockVirtual, Steps: rec.list}
	sc.Recorded = &scenario.Recorded{Clock: s.Clock, DurationMs: end - rec.base, Trace: traceOf(rows, rec.base),
		Pictures: []scenario.Picture{}}
	out := Recording{Name: req.Name, Path: req.Path, DurationMs: sc.Recorded.DurationMs, Steps: len(sc.Steps),
		Requests: len(sc.Recorded.Trace), Notes: []string{}}
	if err := r.write(ctx, req, &sc, rows, rec, &out); err != nil {
		return Recording{}, &backend.Problem{Code: session.CodeStateUnwritable,
			Message: "writing the recording: " + err.Error(),
			FixHint: "pass a path that can be written"}
	}
	return out, nil
}

// span returns the part of a log to record: from the attaching of the app on.
func span(rows []glasses.Event, since int64) []glasses.Event {
	first := slices.IndexFunc(rows, func(e glasses.Event) bool {
		return e.Seq > since &&
			e.Type == glasses.RowAppAttached
	})
	if first < 0 {
		if lastAttached(rows) < 0 {
			return nil // no app was ever there
		}
		// The app was there before the cursor.
		if first = slices.IndexFunc(rows, func(e glasses.Event) bool { return e.Seq > since }); first < 0 {
			return nil
		}
	}
	return rows[first:]
}

// modelBefore returns the device model before a row: the session's current one, unless it changed later.
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
				return glasses.DefaultDeviceModel // nobody wrote down what it was
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

// recorder converts rows to steps.
type recorder struct {
	base  int64
	at    int64 // since base
	model string
	list  []scenario.Step
	last  int // where a camera step goes: before what made the app take the photo
}

// pass adds the time up to an instant of the session's clock.
func (r *recorder) pass(at int64) {
	if ms := at - r.base - r.at; ms > 0 {
		r.list = append(r.list, scenario.Step{Advance: &ms})
		r.at += ms
	}
}

func (r *recorder) add(at int64, s scenario.Step) {
	r.pass(at)
	r.last = len(r.list)
	r.list = append(r.list, s)
}

func (r *recorder) steps(rows []glasses.Event) {
	r.list = []scenario.Step{}
	for _, e := range rows {
		if e.Kind == glasses.KindResult {
			r.photo(e)
			continue
		}
		if e.Sender != glasses.SenderGlasses {
			continue
		}
		if s, ok := stimulus(e); ok {
			r.add(e.At, s)
		}
	}
}

// photo inserts what the camera saw before the last step.
func (r *recorder) photo(e glasses.Event) {
	res, err := glasses.ParseResult(e.Payload)
	if err != nil || res.Media == nil || !strings.HasPrefix(res.Media.MIME, "image/") {
		return
	}
	file := filepath.ToSlash(filepath.Join("media", res.Media.SHA256+".jpg"))
	r.list = slices.Insert(r.list, r.last, scenario.Step{Camera: &file})
	r.last++
}

// stimulus returns the step that makes the glasses send a row.
func stimulus(e glasses.Event) (s scenario.Step, ok bool) {
	into := func(v any) bool { return json.Unmarshal(e.Payload, v) == nil }
	patch := &glasses.StatePatch{}
	switch e.Type {
	case glasses.TypeInput:
		s.Input = &glasses.Input{}
		ok = into(s.Input)
		s.Input.Target = "" // the glasses fill it in
		return s, ok
	case glasses.TypeTranscript:
		s.Transcript = &glasses.Transcript{}
		return s, into(s.Transcript)
	case glasses.TypeFault:
		s.Fault = &glasses.Fault{}
		return s, into(s.Fault)
	case glasses.TypeDevice:
		var p glasses.DeviceChange
		ok = into(&p)
		s.Device = &p.DeviceModel.ID
		return s, ok
	case glasses.TypeBattery:
		patch.Battery = &glasses.Battery{}
		ok = into(patch.Battery)
	case glasses.TypeWear:
		var p glasses.WearState
		ok = into(&p)
		patch.Worn = &p.Worn
	case glasses.TypeHinge, glasses.TypeThermal, glasses.TypeLink:
		var p glasses.StateWord
		ok = into(&p)
		switch e.Type {
		case glasses.TypeHinge:
			patch.Hinge = &p.State
		case glasses.TypeThermal:
			patch.Thermal = &p.State
		default:
			patch.Link = &p.State
		}
	case glasses.TypeRoute:
		var p glasses.RouteState
		ok = into(&p)
		patch.Route = &p.To
	case glasses.TypeCall:
		var p glasses.CallState
		ok = into(&p)
		patch.Call = &p.Active
	case glasses.TypePermission:
		var p glasses.PermissionState
		ok = into(&p)
		patch.Permissions = map[string]string{p.Part: p.State}
	case glasses.TypeDisabled:
		var p glasses.DisabledState
		ok = into(&p)
		patch.Disabled = &p.Parts
	}
	return scenario.Step{State: patch}, ok
}

// write writes the recording and its files; the scenario last, so that an existing scenario is complete.
func (r *Runner) write(ctx context.Context, req RecordRequest, sc *scenario.Scenario, rows []glasses.Event,
	rec *recorder, out *Recording) error {
	dir := filepath.Dir(req.Path)
	for _, p := range panels(rows, rec.base, rec.model) {
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
	sc.Recorded.Media = kept
	sc.Steps = slices.DeleteFunc(sc.Steps, func(s scenario.Step) bool {
		return s.Camera != nil && !slices.Contains(kept, filepath.Base(*s.Camera))
	})
	out.Steps, out.Media = len(sc.Steps), len(kept)
	data, err := sc.Encode()
	if err != nil {
		return err
	}
	if _, err := scenario.Parse(data); err != nil {
		return err // e.g. longer than a scenario may be
	}
	return req.Files.Replace(ctx, req.Path, data, 0o600, 0o700)
}

// writeMedia writes what the camera took, by its hash, and returns the names.
func (r *Runner) writeMedia(ctx context.Context, req RecordRequest, dir string, rows []glasses.Event,
	out *Recording) (kept []string, err error) {
	for _, e := range rows {
		res, err := glasses.ParseResult(e.Payload)
		if e.Kind != glasses.KindResult || err != nil || res.Media == nil {
			continue
		}
		name, body, err := r.media.Media(req.SessionID, res.Media.SHA256)
		if err != nil {
			out.Notes = append(out.Notes,
				"media "+res.Media.SHA256+" is not kept: a run takes the simulator's own pictures instead")
			continue
		}
		if slices.Contains(kept, name) {
			continue
		}
		if err := writeFile(ctx, req.Files, dir, "media", name, body); err != nil {
			return nil, err
		}
		kept = append(kept, name)
	}
	return kept, nil
}

func writeFile(ctx context.Context, files clientio.Files, dir, folder, name string, data []byte) error {
	return files.Replace(ctx, filepath.Join(dir, folder, name), data, 0o600, 0o700)
}
