package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// certainty is how reliably the panel at an earlier moment is known.
type certainty string

const (
	exact   certainty = "exact"
	roughly certainty = "roughly" // the content is correct; focus and scroll position may not be
	unknown certainty = "unknown"
)

// past is a request by the page to rebuild the glasses after each row from From to Until.
type past struct {
	// Base is a snapshot from just before the first row; nil if the page has none.
	Base *glasses.Snapshot `json:"base"`
	// IsFirst reports that the first row is the first of the session, which begins with fresh glasses and a clear panel.
	IsFirst bool `json:"isFirst"`
	// Next is a snapshot from just after the last row.
	Next glasses.Snapshot `json:"next"`
	// Earlier are commands from before the rows whose results are among them.
	Earlier []glasses.Event `json:"earlier"`
	From    int64           `json:"from"`
	Until   int64           `json:"until"`
	Rows    []glasses.Event `json:"rows"`
}

// moment is the state of the glasses at an earlier moment.
type moment struct {
	Certainty certainty        `json:"certainty"`
	Snapshot  glasses.Snapshot `json:"snapshot"`
}

// rebuild returns the glasses after rows of the event log for which the page has no snapshot.
func rebuild(request string) ([]moment, error) {
	var p past
	if err := json.Unmarshal([]byte(request), &p); err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	r := newRebuilder(p)
	var moments []moment
	for _, row := range p.Rows {
		if row.Seq > p.Until {
			break
		}
		r.apply(row)
		if row.Seq >= p.From {
			moments = append(moments, r.moment())
		}
	}
	return moments, nil
}

// moment returns the current state of the glasses. If the panel is not known, it is clear.
func (r *rebuilder) moment() moment {
	m := moment{r.certainty, r.s}
	if _, ok := glasses.Model(r.s.DeviceModel); !ok {
		m.Certainty = unknown
	}
	if m.Certainty == unknown {
		m.Snapshot.View = glasses.View{Focus: -1}
	}
	return m
}

// rebuilder applies the rows of a log to the glasses, in the same way as the device.
type rebuilder struct {
	s         glasses.Snapshot
	certainty certainty // certainty about the panel
	shows     map[string]show
}

// show is a successful change to the panel.
type show struct {
	isLate bool // if true, the change happened at its result, otherwise at its request
	tree   *glasses.Node
}

func newRebuilder(p past) *rebuilder {
	r := &rebuilder{s: p.Next, certainty: unknown, shows: showsIn(slices.Concat(p.Earlier, p.Rows))}
	r.clear()
	switch {
	case p.Base != nil:
		r.s, r.certainty = *p.Base, exact
	case p.IsFirst:
		r.s.State, r.certainty = glasses.FreshState(), exact
		r.s.DeviceModel = firstModel(p)
	default:
		r.s.State, r.s.DeviceModel = stateBefore(p), firstModel(p)
	}
	return r
}

// showsIn returns the changes of the panel that succeeded, by the ID of their command.
func showsIn(rows []glasses.Event) map[string]show {
	late := map[string]bool{}
	for _, row := range rows {
		if row.Kind != glasses.KindResult || row.Sender != glasses.SenderGlasses {
			continue
		}
		if result, err := glasses.ParseResult(row.Payload); err == nil && result.OK {
			late[row.ID] = result.LateMs > 0
		}
	}
	shows := map[string]show{}
	for _, row := range rows {
		isLate, isDone := late[row.ID]
		if row.Kind != glasses.KindRequest || !isDone {
			continue
		}
		switch row.Type {
		case glasses.TypeDisplayShow:
			if tree, err := shown(string(row.Payload)); err == nil {
				shows[row.ID] = show{isLate, tree}
			}
		case glasses.TypeDisplayClear:
			shows[row.ID] = show{isLate, nil}
		}
	}
	return shows
}

// firstModel returns the model before the rows. It is the model of the next snapshot, unless a row has changed it. In
// that case it is unknown, because the row names only the new model.
func firstModel(p past) string {
	for _, row := range p.Rows {
		if row.Type == glasses.TypeDevice && row.Sender == glasses.SenderGlasses {
			return ""
		}
	}
	return p.Next.DeviceModel
}

// stateBefore returns the state before the rows. It is the state of the next snapshot, except that the first event
// about wear or hinge implies the opposite before it. Streams, phrases and faults are not known.
func stateBefore(p past) glasses.State {
	s := p.Next.State
	s.Running, s.Phrases, s.Faults = []string{}, []string{}, []glasses.Fault{}
	var wear, hinge bool
	for _, row := range p.Rows {
		if row.Sender != glasses.SenderGlasses {
			continue
		}
		after, ok := s.AfterEvent(row.Type, row.Payload)
		switch {
		case !ok:
		case row.Type == glasses.TypeWear && !wear:
			s.Worn, wear = !after.Worn, true
		case row.Type == glasses.TypeHinge && !hinge:
			s.Hinge, hinge = glasses.HingeFolded, true
			if after.Hinge == glasses.HingeFolded {
				s.Hinge = glasses.HingeOpen
			}
		}
	}
	return s
}

func (r *rebuilder) model() glasses.DeviceModel {
	m, _ := glasses.Model(r.s.DeviceModel)
	return m
}

func (r *rebuilder) clear() { r.s.View = glasses.View{Focus: -1} }

func (r *rebuilder) apply(row glasses.Event) {
	switch {
	case row.Kind == glasses.KindRequest || row.Kind == glasses.KindResult:
		if done, ok := r.shows[row.ID]; ok && done.isLate == (row.Kind == glasses.KindResult) {
			r.show(done.tree)
		}
	case row.Type == glasses.RowGlassesAttached:
		r.attach()
	case row.Sender != glasses.SenderGlasses:
	case row.Type == glasses.TypeInput:
		r.input(row.Payload)
	case row.Type == glasses.TypeDevice:
		var change glasses.DeviceChange
		if json.Unmarshal(row.Payload, &change) == nil {
			r.s.DeviceModel = change.DeviceModel.ID
			r.show(nil)
		}
	default:
		before := r.s.State.Link
		r.s.State, _ = r.s.State.AfterEvent(row.Type, row.Payload)
		if glasses.PanelClears(before, r.s.State.Link) {
			r.show(nil)
		}
	}
}

// show replaces the content of the panel. A new tree keeps the focus of the previous tree, so the focus must be known.
func (r *rebuilder) show(tree *glasses.Node) {
	if tree == nil {
		r.clear()
		r.certainty = exact
		return
	}
	r.s.View = render.Show(r.model(), r.s.View, tree)
	if len(tree.Targets()) == 0 {
		r.certainty = exact
	} else if r.certainty == unknown {
		r.certainty = roughly
	}
}

// input performs an input of the wearer. If the input reached another target, the rebuilt focus was wrong.
func (r *rebuilder) input(payload []byte) {
	var in glasses.Input
	if json.Unmarshal(payload, &in) != nil || r.certainty == unknown {
		return
	}
	view, target := render.Use(r.model(), r.s.View, in)
	r.s.View = view
	if target != in.Target {
		r.certainty = roughly
	}
}

// attach handles a page that became the glasses. It may have started without the focus of the previous page.
func (r *rebuilder) attach() {
	if r.certainty != exact || r.s.View.Tree == nil {
		return
	}
	if fresh := render.Show(r.model(), glasses.View{Focus: -1}, r.s.View.Tree); !reflect.DeepEqual(fresh, r.s.View) {
		r.certainty = roughly
	}
}

// snapshotPlayer returns a player with the glasses of a snapshot, which the page shows instead of the live ones.
func snapshotPlayer(text string) (*player, error) {
	var s glasses.Snapshot
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("read the snapshot: %w", err)
	}
	m, ok := glasses.Model(s.DeviceModel)
	if !ok {
		return nil, &glasses.Error{Code: glasses.CodeUnsupported, Message: "this build does not know the device model " +
			s.DeviceModel}
	}
	return &player{dev: still{m, s}}, nil
}

// still is a pair of glasses that never changes.
type still struct {
	model    glasses.DeviceModel
	snapshot glasses.Snapshot
}

func (still) Handle(int64, glasses.Frame, []byte) {}
func (still) Control(int64, string, []byte, []byte) glasses.Result {
	return glasses.Result{Error: &glasses.Error{Code: glasses.CodeUnsupported, Message: "this moment is over"}}
}
func (still) Next() (int64, bool)          { return 0, false }
func (still) Tick(int64)                   {}
func (s still) Model() glasses.DeviceModel { return s.model }
func (s still) Snapshot() glasses.Snapshot { return s.snapshot }
