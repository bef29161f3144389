package driver

import (
	"image"

	"github.com/service-dev/service/glasses"
)

// Tested is how a test picture reached the panel. Error is nil if the panel shows it.
type Tested struct{ Error *glasses.Error }

// ShowTest shows a picture, in the way of p, in place of what apps show, until EndTest. Apps do not notice: the panel
// gets their pictures afterwards. Take returns a Tested for each attempt to show it.
func (g *Glasses) ShowTest(now int64, p Panel, picture *image.NRGBA) {
	g.Tick(now)
	if g.ending {
		return
	}
	g.driver.SetPanel(p)
	g.test = picture
	if g.device.Snapshot().State.Link == glasses.LinkLost {
		g.endTested(notConnected())
		return
	}
	g.device.Repaint(g.now)
	g.settle()
}

// EndTest shows what apps show again, in the way of p.
func (g *Glasses) EndTest(now int64, p Panel) {
	g.test, g.tested = nil, 0
	g.SetPanel(now, p)
}

// SetPanel says how the panel shows pictures, and shows the present one again.
func (g *Glasses) SetPanel(now int64, p Panel) {
	g.Tick(now)
	g.driver.SetPanel(p)
	if !g.ending {
		g.device.Repaint(g.now)
		g.settle()
	}
}

func (g *Glasses) endTested(err *glasses.Error) {
	g.tested = 0
	g.outs = append(g.outs, GlassesOut{Tested: &Tested{err}})
}

func notConnected() *glasses.Error {
	return &glasses.Error{Code: glasses.CodeNotConnected, Message: "the glasses are not connected"}
}
