// Package frame drives the glasses of Brilliant Labs, Frame and Halo. Their firmware runs Lua that a client sends. The
// driver installs the program boot.lua in the memory of the glasses and then exchanges data with it: pictures as
// pixels, sound, photos and the wearer's actions. Text from an app never reaches the interpreter. When the session
// ends, the interpreter is restarted, so that the owner's main.lua runs again. The driver has not been run on real
// glasses.
package frame

import (
	"cmp"
	"image"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/internal/problem"
)

// Main is the key of the glasses' only link.
const Main = "main"

// Driver drives one pair of glasses. It implements driver.Driver.
type Driver struct {
	driver.Base
	halo bool
	link queue

	boots int  // consecutive failed attempts
	ready bool // boot.lua is running

	panel   panel
	mic     microphone
	camera  camera
	closing bool
	dark    bool // after closing, the glasses have confirmed that their panel is dark
	left    bool
}

var _ driver.Driver = (*Driver)(nil)

// NewFrame returns a driver for a Frame whose link is down.
func NewFrame() *Driver { return newDriver(false) }

// NewHalo returns a driver for a Halo whose link is down.
func NewHalo() *Driver { return newDriver(true) }

func newDriver(halo bool) *Driver {
	d := &Driver{halo: halo}
	d.link.d = d
	return d
}

// Links implements driver.Driver. The characteristics require encryption, so the glasses must be paired with the
// computer.
func (d *Driver) Links() []driver.LinkSpec {
	prefix := framePrefix
	if d.halo {
		prefix = haloPrefix
	}
	return []driver.LinkSpec{{
		Key: Main, NamePrefix: prefix, Service: service, Write: write, Notify: notify, Bonded: true,
	}}
}

// Event implements driver.Driver.
func (d *Driver) Event(now int64, e driver.Event) {
	d.Tick(now)
	if e.Link != Main {
		return
	}
	switch e.Kind {
	case driver.LinkUp:
		d.connected(e.MTU)
	case driver.LinkDown:
		d.lost()
	case driver.Written:
		d.link.written(e.Problem)
	case driver.Notified:
		d.receive(e.Data)
	}
}

func (d *Driver) connected(mtu int) {
	mtu = cmp.Or(mtu, minMTU) // with a smaller MTU, writes fail
	if mtu < minMTU {
		d.Drop(Main, problem.CodeSmallMTU, "the glasses offer an MTU that is too small for their program")
		return
	}
	most := maxMTUFrame
	if d.halo {
		most = maxMTUHalo
	}
	d.link.open(min(mtu, most))
	d.boots = 0
	d.boot()
}

func (d *Driver) lost() {
	d.link.close()
	d.forget()
	d.endShow(&glasses.Error{Code: glasses.CodeNotConnected, Message: "the glasses are not connected"})
}

// forget drops all state that depends on the program running on the glasses.
func (d *Driver) forget() {
	d.ready = false
	d.panel.sending, d.panel.shown = nil, nil
	d.camera.fail(d, "the glasses stopped before the picture was shown")
}

// boot interrupts the program running on the glasses and installs boot.lua.
func (d *Driver) boot() {
	if d.closing {
		return
	}
	d.link.clear()
	d.forget()
	if d.boots++; d.boots > maxBoots {
		d.Drop(Main, problem.CodeRefused, "the glasses do not run the program of this driver")
		return
	}
	d.link.add(&packet{data: []byte{byteBreak}, timeout: breakTime, done: func(string) {}})
	for n, line := range bootLines {
		d.line(line, n+1, lineTimeout, maxTries)
	}
	d.link.add(&packet{data: []byte(readyLine), timeout: lineTimeout, tries: 1, answers: func(data []byte) bool {
		return len(data) == 2 && data[0] == byteData && data[1] == saysReady
	}, done: d.booted})
}

// line sends a line to the REPL, which prints number after running it. If the number is not printed in time, the driver
// boots the glasses again.
func (d *Driver) line(text string, number int, timeout int64, tries int) {
	d.link.add(&packet{data: []byte(text), timeout: timeout, tries: tries, answers: func(data []byte) bool {
		return printed(data, number)
	}, done: func(problem string) {
		if problem != "" {
			d.boot()
		}
	}})
}

func (d *Driver) booted(problem string) {
	if problem != "" {
		d.boot()
		return
	}
	d.ready, d.boots = true, 0
	d.mic.resume(d)
	d.reconcile()
}

// receive processes a notification, which is data from boot.lua or text from the REPL.
func (d *Driver) receive(data []byte) {
	switch {
	case d.link.answered(data) || len(data) == 0 || !d.ready:
	case data[0] != byteData:
		d.Note("the program in the glasses ended")
		d.boot()
	case len(data) > 2:
		d.heard(data[1], data[2:])
	}
}

// Do implements driver.Driver.
func (d *Driver) Do(now int64, a device.Ask, img *image.NRGBA) {
	d.Tick(now)
	switch a.Kind {
	case device.AskShow, device.AskDark:
		d.show(a.ID, img)
	case device.AskMicOn:
		d.mic.switchOn(d, a.SampleRate)
	case device.AskMicOff:
		d.mic.switchOff(d)
	case device.AskChunk:
		d.mic.ask = &a
		d.mic.give(d)
	case device.AskPhoto, device.AskFrame:
		d.camera.ask(d, a)
	case device.AskVideo:
		d.Answer(a.ID, device.Material{}, &glasses.Error{Code: glasses.CodeUnsupported,
			Message: "the glasses cannot record " +
				"clips: a picture takes seconds over Bluetooth; take photos, or start the video stream"})
	}
}

// Close implements driver.Driver. It clears the panel and restarts the interpreter, so that the owner's main.lua runs.
func (d *Driver) Close(now int64) {
	d.Tick(now)
	if d.closing {
		return
	}
	d.closing, d.ready, d.panel.ask = true, false, 0
	d.link.clear()
	interrupt := func() {
		d.link.add(&packet{data: []byte{byteBreak}, timeout: breakTime, done: func(string) {}})
	}
	interrupt()
	d.link.add(&packet{data: []byte(leaveLine), timeout: leaveTime, tries: leaveTries, answers: func(data []byte) bool {
		return printed(data, 0)
	}, done: func(problem string) { d.dark = problem == "" }})
	interrupt()
	d.link.add(&packet{data: []byte{byteRestart}, timeout: breakTime, done: func(string) { d.left = true }})
}

// Cleared implements driver.Driver.
func (d *Driver) Cleared() bool { return d.dark }

// Closed implements driver.Driver.
func (d *Driver) Closed() bool { return d.closing && (d.left || !d.link.up) }
