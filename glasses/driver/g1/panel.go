package g1

import (
	"fmt"
	"strings"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/internal/problem"
)

// show makes p the wanted picture of both arms, and answers the Ask after they show it.
func (d *Driver) show(ask int, p *picture) {
	d.want, d.ask, d.asked = p, ask, d.Now
	d.reconcile()
}

// blocked returns the reason why the glasses do not show our pictures, or nil if they show them.
func (d *Driver) blocked() *glasses.Error {
	switch {
	case d.inCase:
		return &glasses.Error{Code: glasses.CodePaused, Message: "the glasses are in their case"}
	case d.silent:
		return &glasses.Error{Code: glasses.CodeDisabledByUser, By: glasses.BySwitch,
			Message: "the glasses are in silent mode; a triple tap on an arm ends it"}
	case d.menu:
		return &glasses.Error{Code: glasses.CodeDisabledByUser, By: glasses.BySwitch,
			Message: "the glasses show their own dashboard; the wearer closes it"}
	}
	return nil
}

// panelLost records that the glasses have closed the picture themselves, and sends it again after a pause.
func (d *Driver) panelLost() {
	for _, a := range d.arms {
		a.shown = nil
	}
	d.After(repaintPause, d.reconcile)
}

// reconcile starts the next step towards showing the wanted picture on both arms. It may be called at any time.
func (d *Driver) reconcile() {
	if d.want != nil && (d.closing || d.blocked() == nil) {
		for _, a := range d.arms {
			d.reconcileArm(a)
		}
	}
	d.answerShow()
}

func (d *Driver) reconcileArm(a *arm) {
	if !a.up || a.sending != nil || a.shown != nil && a.shown.equal(d.want) || a.gaveUp == d.want {
		return
	}
	if l := d.left(); d.want.isDark() && a != l && l.up && l.gaveUp != d.want && (l.shown == nil || !l.shown.isDark()) {
		return // only pictures may be sent to both arms at the same time
	}
	a.sending = d.want
	if d.want.isDark() {
		a.request([]byte{opExit}, nil, func(code string) { d.sent(a, code) })
		return
	}
	d.transfer(a, d.want, maxTransfers)
}

// transfer sends a picture to one arm: the file, its end and its checksum. If the arm reports a damaged file, transfer
// sends the file again while left is greater than 1.
func (d *Driver) transfer(a *arm, p *picture, left int) {
	damaged := false
	a.add(&job{packets: p.packets, tries: maxTries, done: func(code string) {
		if code != "" {
			d.sent(a, code)
			return
		}
		a.add(&job{packets: [][]byte{{opPictureEnd, 0x0D, 0x0E}}, answer: opPictureEnd, timeout: endTimeout,
			tries: maxTries, done: func(code string) {
				if code != "" {
					d.sent(a, code)
					return
				}
				a.add(&job{packets: [][]byte{p.crc}, answer: opPictureCRC, timeout: crcTimeout, tries: maxTries,
					check: func(data []byte) bool {
						// The result is byte 5 if present, otherwise byte 1 (EvenDemoApp, bmp_update_manager.dart).
						damaged = len(data) > 5 && data[5] != answerOK || len(data) <= 5 && !isAccepted(data)
						return true
					}, done: func(code string) {
						switch {
						case !damaged || code != "":
							d.sent(a, code)
						case left > 1:
							d.transfer(a, p, left-1)
						default:
							d.sent(a, problem.CodeRefused)
						}
					}}, false)
			}}, false)
	}}, false)
}

// sent records the end of a transfer.
func (d *Driver) sent(a *arm, code string) {
	p := a.sending
	a.sending = nil
	switch code {
	case "":
		a.shown = p
	case problem.CodeLost:
	default:
		a.gaveUp, a.failed = p, code
	}
	d.reconcile()
}

// Unconfirmed implements driver.Driver. Each arm confirms its own picture, and the wearer sees both.
func (d *Driver) Unconfirmed() string {
	if err := d.blocked(); err != nil {
		return err.Message
	}
	var missing []string
	for _, a := range d.arms {
		arm := "the " + a.key + " arm "
		switch {
		case !a.up:
			missing = append(missing, arm+"is not connected")
		case d.want == nil || a.shown != nil && a.shown.equal(d.want):
		case a.gaveUp == d.want && a.failed == problem.CodeRefused:
			missing = append(missing, arm+"refused the picture")
		case a.gaveUp == d.want:
			missing = append(missing, arm+"did not acknowledge the picture")
		default:
			missing = append(missing, arm+"has not confirmed the picture yet")
		}
	}
	return strings.Join(missing, ", ")
}

// answerShow answers the Ask after both arms show the picture or one has failed.
func (d *Driver) answerShow() {
	if d.ask == 0 {
		return
	}
	if err := d.blocked(); err != nil {
		d.endShow(err)
		return
	}
	var failed, absent *arm
	for _, a := range d.arms {
		switch {
		case a.gaveUp == d.want:
			failed = a
		case !a.up:
			absent = a
		case a.shown == nil || !a.shown.equal(d.want):
			return // in progress
		}
	}
	switch {
	case failed != nil && failed.failed == problem.CodeRefused:
		d.endShow(&glasses.Error{Code: glasses.CodePlatform,
			Message: "the " + failed.key + " arm refused the picture: its checksum was wrong"})
	case failed != nil:
		d.endShow(&glasses.Error{Code: glasses.CodeTimeout, Message: fmt.Sprintf(
			"the %s arm did not acknowledge the picture of %d packets", failed.key, len(d.want.packets))})
	case absent != nil:
		d.waitFor(absent)
	default:
		d.endShow(nil)
	}
}

// waitFor fails the Ask if the arm is still disconnected after missingArm.
func (d *Driver) waitFor(a *arm) {
	if d.deadline != nil {
		return
	}
	ask := d.ask
	d.deadline = d.Timers.Add(max(d.asked, a.down)+missingArm, func() {
		d.deadline = nil
		if d.ask == ask && !a.up {
			d.endShow(&glasses.Error{Code: glasses.CodeNotConnected, Message: "the " + a.key + " arm is not connected"})
			return
		}
		d.answerShow()
	})
}

func (d *Driver) endShow(err *glasses.Error) {
	ask := d.ask
	d.ask = 0
	d.Timers.Stop(d.deadline)
	d.deadline = nil
	d.Answer(ask, device.Material{}, err)
}

// Close implements driver.Driver. It switches the microphone off and clears both panels.
func (d *Driver) Close(now int64) {
	d.Tick(now)
	if d.closing {
		return
	}
	d.closing = true
	d.unlisten()
	d.want, d.ask = &picture{}, 0
	for _, a := range d.arms {
		a.abandonPictures()
	}
	d.reconcile()
}

// Cleared implements driver.Driver.
func (d *Driver) Cleared() bool {
	for _, a := range d.arms {
		if !a.up || a.shown == nil || !a.shown.isDark() {
			return false
		}
	}
	return d.closing
}

// Closed implements driver.Driver.
func (d *Driver) Closed() bool {
	if !d.closing {
		return false
	}
	for _, a := range d.arms {
		if a.up && (len(a.jobs) > 0 || a.gaveUp != d.want && (a.shown == nil || !a.shown.isDark())) {
			return false
		}
	}
	return true
}
