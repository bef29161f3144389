package scenario

import (
	"context"
	"encoding/json"
	"maps"
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
	// Claims counts the steps that assert what held while the session was recorded.
	Claims int `json:"claims"`
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
	rec := &recorder{base: rows[0].At, model: modelBefore(x.rows, rows[0].Seq, s.DeviceModel), virtual: x.virtual}
	rec.steps(rows, r.journal.of(req.SessionID, rows[0].Seq))
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
		Requests: len(sc.Recorded.Trace), Claims: rec.claims, Notes: notesOf(x.rows, rows[0].Seq)}
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
		// The app was there before the cursor: a run of another build can only begin where that one attached.
		first = lastAttached(rows)
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

// notesOf lists what happened to the glasses before the recording begins. A run begins with fresh glasses, as the app
// gets their state when it attaches.
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

// recorder converts rows to steps.
type recorder struct {
	base    int64
	at      int64 // since base
	model   string
	virtual bool
	list    []scenario.Step
	claims  int

	last    int                // where a camera step goes: before what made the app take the photo
	photos  map[string]photoAt // photos that are being taken, by the id of the command
	merging int                // rank of the state that the last step sets, if the next row may join it; else 0
	claimed map[int64]struct{} // rows that a claim waits for
}

// photoAt is where the camera step of a photo goes.
type photoAt struct{ index int }

// pass adds the time up to an instant of the session's clock.
func (r *recorder) pass(at int64) {
	for ms := at - r.base - r.at; ms > 0; ms = at - r.base - r.at {
		ms = min(ms, scenario.MaxAdvance)
		r.list = append(r.list, scenario.Step{Advance: &ms})
		r.at += ms
		r.merging = 0
	}
}

func (r *recorder) add(at int64, s scenario.Step) {
	r.pass(at)
	r.last = len(r.list)
	r.list = append(r.list, s)
	r.merging = 0
}

// steps converts the rows, and the entries of the journal between them.
func (r *recorder) steps(rows []glasses.Event, noted []note) {
	r.list, r.photos, r.claimed = []scenario.Step{}, map[string]photoAt{}, map[int64]struct{}{}
	for _, e := range rows {
		for len(noted) > 0 && noted[0].after < e.Seq {
			r.note(noted[0])
			noted = noted[1:]
		}
		switch {
		case e.Kind == glasses.KindResult:
			r.photo(e)
		case e.Sender == glasses.SenderApp:
			r.merging = 0
			if e.Type == glasses.TypeCameraPhoto {
				r.photos[e.ID] = r.beforePhoto(e.At)
			}
		case e.Sender == glasses.SenderGlasses:
			r.stimulate(e)
		}
	}
	for _, n := range noted {
		r.note(n)
	}
}

// stimulate adds the step of a row. States that one inject changed are rows at one instant, in the order in which the
// glasses report them, with nothing of the app between: they become one step again, as the app must see them at once.
func (r *recorder) stimulate(e glasses.Event) {
	s, ok := stimulus(e)
	if !ok {
		return
	}
	rank := stateRank(e)
	if r.merging > 0 && rank > r.merging && e.At-r.base == r.at {
		mergeState(r.list[len(r.list)-1].State, s.State)
		r.merging = rank
		return
	}
	r.add(e.At, s)
	r.merging = rank
}

// stateRank is the place of a state's row among those of one change, from 1; 0 for other rows.
func stateRank(e glasses.Event) int {
	if e.Type == glasses.TypePermission {
		var p glasses.PermissionState
		_ = json.Unmarshal(e.Payload, &p)
		return 10 + slices.Index([]string{"camera", "microphone", "speech"}, p.Part)
	}
	order := []string{glasses.TypeBattery, glasses.TypeWear, glasses.TypeHinge, glasses.TypeThermal, glasses.TypeLink,
		glasses.TypeRoute, glasses.TypeCall}
	if i := slices.Index(order, e.Type); i >= 0 {
		return 1 + i
	}
	if e.Type == glasses.TypeDisabled {
		return 20
	}
	return 0
}

// mergeState adds to a patch what the next row changed.
func mergeState(into, from *glasses.StatePatch) {
	switch {
	case from.Worn != nil:
		into.Worn = from.Worn
	case from.Hinge != nil:
		into.Hinge = from.Hinge
	case from.Thermal != nil:
		into.Thermal = from.Thermal
	case from.Link != nil:
		into.Link = from.Link
	case from.Route != nil:
		into.Route = from.Route
	case from.Call != nil:
		into.Call = from.Call
	case from.Disabled != nil:
		into.Disabled = from.Disabled
	case from.Permissions != nil:
		if into.Permissions == nil {
			into.Permissions = map[string]string{}
		}
		maps.Copy(into.Permissions, from.Permissions)
	}
}

// note adds what left no row: a claim, or a movement of the head.
func (r *recorder) note(n note) {
	if n.row > 0 {
		if _, ok := r.claimed[n.row]; ok {
			return // a row meets one expectation
		}
		r.claimed[n.row] = struct{}{}
	}
	if n.step.Motion != nil {
		r.add(n.at, n.step)
		return
	}
	r.pass(n.at)
	step := n.step
	within := int64(0)
	if !r.virtual {
		within = scenario.DefaultWithin
	}
	switch {
	case step.Expect != nil:
		e := *step.Expect
		e.WithinMs, step.Expect = &within, &e
	case step.ExpectDisplay != nil:
		e := *step.ExpectDisplay
		e.WithinMs, step.ExpectDisplay = &within, &e
	}
	r.list = append(r.list, step)
	r.merging = 0
	r.claims++
}

// beforePhoto returns where the camera gets the picture of a photo that is asked for now: before the step at this
// instant, or, if time made the app ask, before the millisecond in which it did.
func (r *recorder) beforePhoto(at int64) photoAt {
	if at-r.base > r.at {
		r.pass(at - 1)
		index := len(r.list)
		r.pass(at)
		return photoAt{index}
	}
	return photoAt{r.last}
}

// photo inserts what the camera saw.
func (r *recorder) photo(e glasses.Event) {
	res, err := glasses.ParseResult(e.Payload)
	place, ok := r.photos[e.ID]
	delete(r.photos, e.ID)
	if err != nil || !ok || res.Media == nil || !strings.HasPrefix(res.Media.MIME, "image/") {
		return
	}
	file := filepath.ToSlash(filepath.Join("media", res.Media.SHA256+".jpg"))
	r.list = slices.Insert(r.list, place.index, scenario.Step{Camera: &file})
	if r.last >= place.index {
		r.last++
	}
	for id, other := range r.photos {
		if other.index >= place.index {
			r.photos[id] = photoAt{other.index + 1}
		}
	}
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
	sc.Steps = joined(sc.Steps)
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

// joined makes one step of times that pass one after the other.
func joined(steps []scenario.Step) []scenario.Step {
	list := []scenario.Step{}
	for _, s := range steps {
		if n := len(list); s.Advance != nil && n > 0 && list[n-1].Advance != nil {
			if ms := *list[n-1].Advance + *s.Advance; ms <= scenario.MaxAdvance {
				list[n-1].Advance = &ms
				continue
			}
		}
		list = append(list, s)
	}
	return list
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
