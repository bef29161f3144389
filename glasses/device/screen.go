package device

import "github.com/service-dev/service/glasses"

// panel sends pictures to a panel that needs time to show them, either a real panel or a simulated one with
// Options.Pace. It sends one picture at a time, and skips a waiting picture when a newer one arrives.
type panel struct {
	isReal bool            // the host shows the pictures
	isSlow bool            // a picture takes the model's FullMs
	active *picturePending // picture being sent
	next   *picturePending // picture to be sent after active
	// confirmed is the view of the latest picture that the panel confirmed. It is nil if the panel may show another
	// picture.
	confirmed *glasses.View

	unconfirmed func() string // Options.Unconfirmed
}

// picturePending is a change of the panel. c is the command that caused it, and r is the command's result. c is nil for
// a change by the wearer. view is the view that the picture shows, or nil if the host has since changed how pictures
// reach the panel.
type picturePending struct {
	c    *command
	r    glasses.Result
	view *glasses.View
}

// paint updates the panel to the view and then answers c with r. Simulated glasses without Pace are updated
// immediately.
func (d *Device) paint(c *command, r glasses.Result) {
	p := &picturePending{c: c, r: r}
	switch {
	case !d.panel.isReal && !d.panel.isSlow:
		d.finish(c, r, nil)
	case d.panel.active == nil:
		d.send(p)
	default:
		if old := d.panel.next; old != nil {
			old.r.Superseded = true
			d.answerPicture(old)
		}
		d.panel.next = p
	}
}

// unconfirmed returns the reason why the panel may not show the view, or "" if the panel shows it.
func (d *Device) unconfirmed() string {
	if d.panel.unconfirmed != nil {
		if why := d.panel.unconfirmed(); why != "" {
			return why
		}
	}
	if d.panel.active != nil {
		return "the picture is on its way to the panel"
	}
	return ""
}

// confirmed returns the view that the panel shows while a later picture is being sent, or nil if that view is unknown.
func (d *Device) confirmed() *glasses.View {
	if d.panel.active == nil {
		return nil
	}
	return d.panel.confirmed
}

// repaint updates a real panel after a change that no command caused.
func (d *Device) repaint() {
	if (d.panel.isReal || d.panel.isSlow) && d.state.Link != glasses.LinkLost {
		d.paint(nil, glasses.Result{})
	}
}

// Repaint sends the view to real glasses again. The host calls it after changing how pictures reach the panel.
func (d *Device) Repaint(now int64) {
	d.Tick(now)
	d.panel.confirmed = nil
	if d.panel.active != nil {
		d.panel.active.view = nil
	}
	d.repaint()
}

// send asks the host to show the picture, or waits as long as the model's panel needs.
func (d *Device) send(p *picturePending) {
	view := d.view
	d.panel.active, p.view = p, &view
	kind := AskShow
	if d.view.Tree == nil {
		kind = AskDark
	}
	switch {
	case d.panel.isReal:
		d.ask(Ask{Kind: kind}, &d.panel, func(_ Material, err *glasses.Error) { d.sent(p, err) })
	case kind == AskShow && d.model.Panel != nil:
		d.after(d.model.Panel.FullMs, &d.panel, func() { d.sent(p, nil) })
	default:
		d.sent(p, nil)
	}
}

// sent handles the outcome of the active picture p. It answers p's command, with err if it is not nil, and sends the
// next picture.
func (d *Device) sent(p *picturePending, err *glasses.Error) {
	if err != nil {
		p.r = glasses.Result{Error: err}
	}
	next := d.panel.next
	d.panel.active, d.panel.next, d.panel.confirmed = nil, nil, nil
	if err == nil && d.unconfirmed() == "" {
		d.panel.confirmed = p.view
	}
	d.answerPicture(p)
	if next != nil {
		d.send(next)
	}
}

func (d *Device) answerPicture(p *picturePending) {
	if p.c != nil {
		d.finish(p.c, p.r, nil)
	}
}

// dropPictures fails the commands whose pictures have not been shown, with the error why.
func (d *Device) dropPictures(why *glasses.Error) {
	d.forget(&d.panel)
	d.queue.cancel(&d.panel)
	for _, p := range []*picturePending{d.panel.active, d.panel.next} {
		if p != nil {
			p.r = glasses.Result{Error: why}
			d.answerPicture(p)
		}
	}
	d.panel.active, d.panel.next, d.panel.confirmed = nil, nil, nil
}
