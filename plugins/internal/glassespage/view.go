package glassespage

import (
	"reflect"

	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/internal/problem"
)

// Shown is the information about the glasses that the page shows.
type Shown struct {
	Pair  string // name of the pair, once known
	Links []ShownLink
	// CanCheck is set if the panel can be checked with a test picture. Checked is set if such a picture was right.
	// Check is the step of the current or last check; "" if there was none.
	CanCheck, Checked bool
	Check             string
}

// PanelAnswer is an action of the user about the panel: starting or cancelling a check, or answering its questions.
type PanelAnswer struct {
	Begin, Cancel   bool
	Upright, Border bool
}

// ShownLink is the state of a link.
type ShownLink struct {
	Key     string
	State   string // up, opening or down
	Battery int    // percent; 0 if unknown
	Problem string // reason why the link is down: a code of package driver, or ""
}

// view is the JSON form of Shown, with additional state that the page itself knows.
type view struct {
	Pair     string     `json:"pair"`
	Links    []viewLink `json:"links"`
	CanCheck bool       `json:"canCheck"`
	Checked  bool       `json:"checked"`
	Check    string     `json:"check"`
}

type viewLink struct {
	Key     string         `json:"key"`
	State   string         `json:"state"` // choose, waiting, opening, up or down
	Name    string         `json:"name"`
	Battery int            `json:"battery"`
	Problem *problem.Error `json:"problem"`
}

// Show updates what the page shows.
func (p *Page) Show(s Shown) {
	p.mu.Lock()
	p.shown = s
	p.refresh()
	p.mu.Unlock()
}

// refresh sends the state to the tab if it changed. mu must be held.
func (p *Page) refresh() {
	if p.tab == nil {
		return
	}
	v := view{Pair: p.shown.Pair, Links: make([]viewLink, len(p.links)), CanCheck: p.shown.CanCheck,
		Checked: p.shown.Checked, Check: p.shown.Check}
	for i, l := range p.links {
		one := viewLink{Key: l.spec.Key, State: "choose", Name: l.name, Problem: l.problem}
		if l.name != "" {
			one.State = driver.LinkDown
		}
		for _, s := range p.shown.Links {
			if s.Key != l.spec.Key || l.name == "" {
				continue
			}
			one.State, one.Battery = s.State, s.Battery
			if s.State == driver.LinkDown && s.Problem != "" && one.Problem == nil {
				one.Problem = linkProblem(s.Problem)
			}
		}
		v.Links[i] = one
	}
	if p.tab.sent != nil && reflect.DeepEqual(*p.tab.sent, v) {
		return
	}
	p.tab.sent = &v
	p.tell(toPage{Type: typeState, State: &v})
}
