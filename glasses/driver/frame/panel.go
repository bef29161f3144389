package frame

import (
	"bytes"
	"fmt"
	"image"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/driver"
)

// maxAttempts bounds the attempts to show one picture. Between two of them the glasses are booted.
const maxAttempts = 2

// panel is what the panel should show and what it shows.
type panel struct {
	want     *image.NRGBA // nil until the first Ask
	ask      int          // the Ask for want that is not answered; 0 for none
	attempts int          // that failed for want
	problem  string       // of the last one
	sending  *image.NRGBA
	shown    *image.NRGBA // nil if unknown
}

// show makes img the picture to show; nil is a dark panel.
func (d *Driver) show(ask int, img *image.NRGBA) {
	if img == nil {
		img = image.NewNRGBA(d.bounds())
	}
	d.panel.want, d.panel.ask, d.panel.attempts = img, ask, 0
	d.reconcile()
}

func (d *Driver) bounds() image.Rectangle {
	if d.halo {
		return image.Rect(0, 0, 256, 256)
	}
	return image.Rect(0, 0, 640, 400)
}

// reconcile starts what is missing for the panel to show the wanted picture. It may be called at any time.
func (d *Driver) reconcile() {
	p := &d.panel
	switch {
	case !d.ready || p.want == nil || p.sending != nil:
	case p.shown != nil && bytes.Equal(p.shown.Pix, p.want.Pix):
		d.endShow(nil)
	case p.attempts >= maxAttempts:
		code := glasses.CodeTimeout
		if p.problem == driver.ProblemRefused {
			code = glasses.CodePlatform
		}
		d.endShow(&glasses.Error{Code: code, Message: fmt.Sprintf("the glasses did not take the picture: %s", p.problem)})
	default:
		d.send(p.want)
	}
}

// Unconfirmed implements driver.Driver.
func (d *Driver) Unconfirmed() string {
	switch p := &d.panel; {
	case !d.link.up:
		return "the glasses are not connected"
	case p.want == nil || p.shown != nil && bytes.Equal(p.shown.Pix, p.want.Pix):
		return ""
	case p.attempts >= maxAttempts:
		return "the glasses did not take the picture: " + p.problem
	}
	return "the glasses have not confirmed the picture yet"
}

// send queues the packets of a picture: the tiles that differ from what the panel shows, and the command to show
// them. A Frame draws into a hidden buffer, which begins dark; a Halo draws directly.
func (d *Driver) send(img *image.NRGBA) {
	p := &d.panel
	p.sending = img
	base := p.shown
	p.shown = nil
	if base == nil || !d.halo {
		d.link.add(data(opBegin, nil, d.sent))
		base = nil
	}
	for _, tile := range tiles(img, base, d.link.room(), d.halo) {
		d.link.add(data(opTile, tile, d.sent))
	}
	d.link.add(data(opShow, nil, func(problem string) {
		if problem == "" {
			p.shown, p.sending = img, nil
			d.reconcile()
			return
		}
		d.sent(problem)
	}))
}

// sent boots the glasses if a packet of the picture failed.
func (d *Driver) sent(problem string) {
	if problem == "" {
		return
	}
	d.panel.attempts++
	d.panel.problem = problem
	d.boot()
}

func (d *Driver) endShow(err *glasses.Error) {
	if ask := d.panel.ask; ask != 0 {
		d.panel.ask = 0
		d.Answer(ask, device.Material{}, err)
	}
}
