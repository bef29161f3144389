package scenario

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
)

// recorder converts rows into steps.
type recorder struct {
	base    int64
	at      int64 // ms since base
	model   string
	virtual bool
	list    []scenario.Step
	claims  int

	last    int                // where to insert a camera step: before the step that caused the app to take the photo
	photos  map[string]photoAt // photos in progress, by the ID of the command
	merging int                // rank of the state that the last step sets if the next row may join that step; else 0
	claimed map[int64]struct{} // rows that claims wait for
	labels  []note             // notes about the steps that follow
	omitted []string           // descriptions of omissions
	words   map[string][]byte  // WebVTT files of the microphone, by name
}

// mediaFolder is the folder, next to a recording, of what camera and microphone of its glasses perceive.
const mediaFolder = "media"

// photoAt is the position at which to insert the camera step for a photo.
type photoAt struct{ index int }

// pass adds a step that advances the session's clock to at.
func (r *recorder) pass(at int64) {
	for ms := at - r.base - r.at; ms > 0; ms = at - r.base - r.at {
		ms = min(ms, scenario.MaxAdvance)
		r.list = append(r.list, r.labelled(scenario.Step{Advance: &ms}))
		r.at += ms
		r.merging = 0
	}
}

func (r *recorder) add(at int64, s scenario.Step) {
	r.pass(at)
	r.last = len(r.list)
	r.list = append(r.list, r.labelled(s))
	r.merging = 0
}

// steps converts the rows, and the journal entries between them, to steps.
func (r *recorder) steps(rows []glasses.Event, noted []note) {
	r.list, r.photos, r.claimed = []scenario.Step{}, map[string]photoAt{}, map[int64]struct{}{}
	r.words = map[string][]byte{}
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

// stimulate adds the step for a row. If one call changed several states, the log contains a row for each state, at the
// same time, in the order in which the glasses report them, and without an app's row in between. stimulate merges these
// rows into one step, because the app must see the states together.
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

// stateRank returns the position, from 1, of a state's row among the rows of one change. It returns 0 for other rows.
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

// mergeState adds the next row's change to a patch. Fields that the row does not change remain unset.
func mergeState(into, from *glasses.StatePatch) {
	data, err := json.Marshal(from)
	if err == nil {
		_ = json.Unmarshal(data, into)
	}
}

// note adds a step without a row: a claim, a head movement, a picture or what the microphone hears.
func (r *recorder) note(n note) {
	switch {
	case n.label != nil:
		r.labels = append(r.labels, n)
		return
	case n.omitted != "":
		r.omitted = append(r.omitted, n.omitted)
		return
	case n.step.Picture != nil:
		r.pass(n.at)
		r.list = append(r.list, n.step)
		r.merging = 0
		return
	}
	if n.row > 0 {
		if _, ok := r.claimed[n.row]; ok {
			return // a row can meet only one expectation
		}
		r.claimed[n.row] = struct{}{}
	}
	if n.words != nil {
		r.words[path.Base(*n.step.Microphone)] = n.words
	}
	if n.step.Motion != nil || n.step.Microphone != nil {
		r.add(n.at, n.step)
		return
	}
	r.pass(n.at)
	step := n.step
	var within *int64 // in real time, use the default, which depends on the panel during the replay
	if r.virtual {
		within = new(int64)
	}
	switch {
	case step.Expect != nil:
		e := *step.Expect
		e.WithinMs, step.Expect = within, &e
	case step.ExpectDisplay != nil:
		e := *step.ExpectDisplay
		e.WithinMs, step.ExpectDisplay = within, &e
	}
	r.list = append(r.list, step)
	r.merging = 0
	r.claims++
}

// beforePhoto returns where to insert the camera step for a photo that the app requests now. The place is before the
// step that caused the request at the same time. If elapsed time caused the request, it is before the millisecond of
// the request.
func (r *recorder) beforePhoto(at int64) photoAt {
	if at-r.base > r.at {
		r.pass(at - 1)
		index := len(r.list)
		r.pass(at)
		return photoAt{index}
	}
	return photoAt{r.last}
}

// photo inserts a step with the picture that the camera returned.
func (r *recorder) photo(e glasses.Event) {
	res, err := glasses.ParseResult(e.Payload)
	place, ok := r.photos[e.ID]
	delete(r.photos, e.ID)
	if err != nil || !ok || res.Media == nil || !strings.HasPrefix(res.Media.MIME, "image/") {
		return
	}
	file := mediaFolder + "/" + res.Media.SHA256 + ".jpg"
	r.list = slices.Insert(r.list, place.index, r.labelled(scenario.Step{Camera: &file}))
	if r.last >= place.index {
		r.last++
	}
	for id, other := range r.photos {
		if other.index >= place.index {
			r.photos[id] = photoAt{other.index + 1}
		}
	}
}

// stimulus returns the step that causes the glasses to send a row.
func stimulus(e glasses.Event) (s scenario.Step, ok bool) {
	into := func(v any) bool { return json.Unmarshal(e.Payload, v) == nil }
	patch := &glasses.StatePatch{}
	switch e.Type {
	case glasses.TypeInput:
		s.Input = &glasses.Input{}
		ok = into(s.Input)
		s.Input.Target = "" // the glasses set it again
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

// joined merges consecutive advance steps into one.
func joined(steps []scenario.Step) []scenario.Step {
	list := []scenario.Step{}
	for _, s := range steps {
		if n := len(list); s.Advance != nil && s.Note == "" && n > 0 && list[n-1].Advance != nil {
			if ms := *list[n-1].Advance + *s.Advance; ms <= scenario.MaxAdvance {
				list[n-1].Advance = &ms
				continue
			}
		}
		list = append(list, s)
	}
	return list
}
