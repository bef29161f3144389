package device

import "github.com/service-dev/service/glasses"

// panel sends pictures to a panel that needs time for each: a real one, or a simulated one with its pace. Only one
// picture is on its way at a time, and of those that come meanwhile only the latest is sent.
type panel struct {
	isReal bool            // the host shows pictures
	isSlow bool            // pictures take the model's time
	active *picturePending // on its way
	next   *picturePending // sent when active is answered
	// confirmed is the view of the latest picture that arrived; nil if the panel may show something else.
	confirmed *glasses.View

	unconfirmed func() string // of Options
}

// picturePending is a change of the panel. c is the command that caused it and r its result; c is nil for a change that
// the wearer caused. view is what it shows, or nil if the host changed meanwhile how pictures reach the panel.
type picturePending struct {
	c    *command
	r    glasses.Result
	view *glasses.View
}

// paint brings the panel up to date with the view and then answers c with r. Simulated glasses without a pace do so
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

// unconfirmed returns why the panel may not show the view, or "" if it does.
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

// confirmed returns the view that the panel shows while a later picture is on its way, or nil if that is not known.
func (d *Device) confirmed() *glasses.View {
	if d.panel.active == nil {
		return nil
	}
	return d.panel.confirmed
}

// repaint brings a real panel up to date after a change that no command caused.
func (d *Device) repaint() {
	if (d.panel.isReal || d.panel.isSlow) && d.state.Link != glasses.LinkLost {
		d.paint(nil, glasses.Result{})
	}
}

// Repaint makes a host that drives real glasses show the view again, after it changed how pictures reach the panel.
func (d *Device) Repaint(now int64) {
	d.Tick(now)
	d.panel.confirmed = nil
	if d.panel.active != nil {
		d.panel.active.view = nil
	}
	d.repaint()
}

// send asks the host for the picture of the view, or waits for as long as the panel of the model needs.
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

// sent answers the command whose picture the panel shows or refused, and sends the next one.
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

// dropPictures refuses, for this reason, the commands whose pictures have not arrived.
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
