package frame

import (
	"bytes"
	"fmt"
	"image"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/internal/problem"
)

// maxAttempts is the maximum number of attempts to show a picture. The glasses are booted again between attempts.
const maxAttempts = 2

// panel is the state of the panel: the wanted picture and the shown picture.
type panel struct {
	want     *image.NRGBA // nil until the first Ask
	ask      int          // the unanswered Ask for want; 0 if there is none
	attempts int          // failed attempts to show want
	problem  string       // of the last attempt
	sending  *image.NRGBA
	shown    *image.NRGBA // nil if unknown
}

// show makes img the wanted picture. A nil img means a dark panel.
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

// reconcile starts the next step towards showing the wanted picture. It may be called at any time.
func (d *Driver) reconcile() {
	p := &d.panel
	switch {
	case !d.ready || p.want == nil || p.sending != nil:
	case p.shown != nil && bytes.Equal(p.shown.Pix, p.want.Pix):
		d.endShow(nil)
	case p.attempts >= maxAttempts:
		code := glasses.CodeTimeout
		if p.problem == problem.CodeRefused {
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

// send queues the packets of a picture: the tiles that differ from the panel's picture, and the command to show them. A
// Frame draws into a hidden buffer that starts dark. A Halo draws directly to the panel.
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
