// Package panelcheck determines how the panel of one pair of real glasses shows pictures. It shows a test picture, asks
// the user what they see and, if the picture looks wrong, shows it again with other settings. It does no I/O. The
// caller passes the questions to the user and the outputs of the glasses to the Check.
package panelcheck

import (
	"image"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/driver/kinds"
)

// Step is the progress of a check.
type Step string

// Steps of a check. The last three are final.
const (
	Showing     Step = "showing"     // the picture is being sent to the glasses
	Asking      Step = "asking"      // the user answers both questions
	AskingAgain Step = "askingAgain" // the user answers whether the picture is right now
	Right       Step = "right"
	Wrong       Step = "wrong" // the picture was wrong with all settings; the panel's settings are unchanged
	Lost        Step = "lost"  // the glasses were disconnected or did not show the picture
)

// Panel is a pair of glasses whose panel can be checked, usually a *driver.Glasses.
type Panel interface {
	Model() glasses.DeviceModel
	ShowTest(now int64, p driver.Panel, picture *image.NRGBA)
	EndTest(now int64, p driver.Panel)
}

// Check is one check. It is not safe for concurrent use. All times are in milliseconds on the session's clock.
type Check struct {
	glasses Panel
	kind    kinds.Kind
	before  driver.Panel
	now     driver.Panel // settings being tried
	step    Step
	isAgain bool // the picture was wrong with before
}

// Begin shows the test picture. panel contains the settings known so far.
func Begin(now int64, g Panel, panel driver.Panel) *Check {
	kind, _ := kinds.Of(g.Model().ID)
	c := &Check{glasses: g, kind: kind, before: panel, now: panel}
	c.show(now)
	return c
}

// Step returns the current step.
func (c *Check) Step() Step { return c.step }

// IsOver reports whether the check has ended.
func (c *Check) IsOver() bool { return c.step == Right || c.step == Wrong || c.step == Lost }

// Panel returns the settings with which the picture looked right. If there are none, it returns the settings known
// before the check.
func (c *Check) Panel() driver.Panel {
	if c.step == Right {
		return c.now
	}
	return c.before
}

func (c *Check) show(now int64) {
	c.step = Showing
	c.glasses.ShowTest(now, c.now, Picture(c.glasses.Model(), c.now.Rows))
}

// Tested processes the outcome of showing the picture. Glasses that refuse the picture may have fewer rows.
func (c *Check) Tested(now int64, t driver.Tested) {
	switch {
	case c.step != Showing:
		if t.Error != nil && t.Error.Code == glasses.CodeNotConnected && !c.IsOver() {
			c.end(now, Lost)
		}
	case t.Error == nil && c.isAgain:
		c.step = AskingAgain
	case t.Error == nil:
		c.step = Asking
	case t.Error.Code == glasses.CodeNotConnected:
		c.end(now, Lost)
	default:
		c.judge(now, true, false)
	}
}

// Answer processes the user's answers: whether the picture is upright with the left square lit, and whether its border
// is complete. It does nothing if no question is open.
func (c *Check) Answer(now int64, isUpright, hasBorder bool) {
	if c.step == Asking || c.step == AskingAgain {
		c.judge(now, isUpright, hasBorder)
	}
}

func (c *Check) judge(now int64, isUpright, hasBorder bool) {
	if isUpright && hasBorder {
		c.end(now, Right)
		return
	}
	other, ok := Other(c.kind, c.now, isUpright, hasBorder)
	if c.isAgain || !ok {
		c.end(now, Wrong)
		return
	}
	c.now, c.isAgain = other, true
	c.show(now)
}

// Cancel ends the check without changing settings.
func (c *Check) Cancel(now int64) {
	if !c.IsOver() {
		c.end(now, Wrong)
	}
}

func (c *Check) end(now int64, step Step) {
	c.step = step
	c.glasses.EndTest(now, c.Panel())
}

// Other returns the settings to try after a test picture looked wrong with p. ok is false if there are no others.
func Other(kind kinds.Kind, p driver.Panel, isUpright, hasBorder bool) (other driver.Panel, ok bool) {
	if kind.OtherRows == 0 {
		return p, false
	}
	if !isUpright {
		p.Inverted = !p.Inverted
	}
	if !hasBorder {
		p.Rows = kind.OtherRows - p.Rows
	}
	return p, true
}
