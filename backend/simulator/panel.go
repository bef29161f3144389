package main

import (
	"encoding/json"

	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/driver/panelcheck"
)

// panel holds what is known about the panel of real glasses.
type panel struct {
	canCheck bool
	known    panelSettings
	check    *panelcheck.Check // nil if no check was made
}

// panelSettings holds how a panel shows pictures. The page stores it for each pair.
type panelSettings struct {
	driver.Panel
	Checked bool `json:"checked"` // a test picture was shown correctly
}

// panelState is the state of the panel as shown on the page.
type panelState struct {
	CanCheck bool            `json:"canCheck"`
	Checked  bool            `json:"checked"`
	Step     panelcheck.Step `json:"step"`
	// Found is the result to store for this pair; "" until a check has succeeded.
	Found string `json:"found"`
}

func (p *player) panelState() panelState {
	s := panelState{CanCheck: p.panel.canCheck, Checked: p.panel.known.Checked}
	if check := p.panel.check; check != nil {
		s.Step = check.Step()
		if s.Step == panelcheck.Right {
			data, err := json.Marshal(p.panel.known)
			if err != nil {
				panic(err)
			}
			s.Found = string(data)
		}
	}
	return s
}

// setPanel applies the settings that the page stored for this pair. Unreadable settings count as unknown.
func (p *player) setPanel(now int64, stored string) {
	var known panelSettings
	if p.real == nil || json.Unmarshal([]byte(stored), &known) != nil || known.Rows < 0 {
		return
	}
	p.panel.known = known
	p.real.SetPanel(now, known.Panel)
}

// checkPanel shows the test picture.
func (p *player) checkPanel(now int64) {
	if p.real != nil && p.panel.canCheck && (p.panel.check == nil || p.panel.check.IsOver()) {
		p.panel.check = panelcheck.Begin(now, p.real, p.panel.known.Panel)
	}
}

// seePanel processes the user's answers about the test picture.
func (p *player) seePanel(now int64, isUpright, hasBorder bool) {
	if p.panel.check != nil {
		p.panel.check.Answer(now, isUpright, hasBorder)
		p.endCheck()
	}
}

// cancelCheck ends the check without a result.
func (p *player) cancelCheck(now int64) {
	if p.panel.check != nil {
		p.panel.check.Cancel(now)
		p.panel.check = nil
	}
}

func (p *player) tested(t driver.Tested) {
	if p.panel.check != nil {
		p.panel.check.Tested(p.now, t)
		p.endCheck()
	}
}

func (p *player) endCheck() {
	if p.panel.check.Step() == panelcheck.Right {
		p.panel.known = panelSettings{p.panel.check.Panel(), true}
	}
}
