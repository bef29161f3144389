package driver

import (
	"image"

	"github.com/service-dev/service/glasses"
)

// Tested is the outcome of showing a test picture. Error is nil if the panel shows it.
type Tested struct{ Error *glasses.Error }

// ShowTest shows a test picture with the settings p instead of the apps' pictures until EndTest is called. Apps do not
// notice this, and their latest picture is shown again afterwards. Take returns a Tested for each attempt.
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

// EndTest shows the apps' picture again, with the settings p.
func (g *Glasses) EndTest(now int64, p Panel) {
	g.test, g.tested = nil, 0
	g.SetPanel(now, p)
}

// SetPanel sets how the panel shows pictures, and shows the current picture again.
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
