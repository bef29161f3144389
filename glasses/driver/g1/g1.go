// Package g1 drives Even Realities G1 glasses, which consist of two arms. Each arm is a Bluetooth LE peripheral with
// the Nordic UART service. Pictures are sent to both arms as BMP files, so the wearer sees the pixels of package
// render. Text in the glasses' own font is not used. The byte values are from the vendor's public EvenDemoApp; values
// from other sources are marked where they are used. The driver has not been run on real glasses.
package g1

import (
	"cmp"
	"image"
	"slices"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/internal/problem"
)

// Keys of the two links.
const (
	Left  = "left"
	Right = "right"
)

// UUIDs of the Nordic UART service.
const (
	service = "6e400001-b5a3-f393-e0a9-e50e24dcca9e"
	write   = "6e400002-b5a3-f393-e0a9-e50e24dcca9e"
	notify  = "6e400003-b5a3-f393-e0a9-e50e24dcca9e"
)

// Driver drives one pair. It implements driver.Driver.
type Driver struct {
	driver.Base
	panel driver.Panel
	arms  [2]*arm // left, right

	want     *picture // picture that the panel should show; nil until the first Ask
	ask      int      // the unanswered Ask for want; 0 if there is none
	asked    int64    // time of the Ask
	deadline *driver.Timer
	silent   bool // the wearer has switched silent mode on
	menu     bool // the glasses show their own dashboard
	inCase   bool
	mic      microphone
	beating  bool // beat is running
	beats    int
	closing  bool
}

var _ driver.Driver = (*Driver)(nil)

// New returns a driver whose links are down.
func New(p driver.Panel) *Driver {
	d := &Driver{panel: p}
	for i, key := range []string{Left, Right} {
		d.arms[i] = &arm{d: d, key: key, battery: -1}
	}
	return d
}

// Links implements driver.Driver.
func (d *Driver) Links() []driver.LinkSpec {
	spec := driver.LinkSpec{Key: Left, NamePrefix: namePrefix, Service: service, Write: write, Notify: notify}
	right := spec
	right.Key = Right
	return []driver.LinkSpec{spec, right}
}

func (d *Driver) left() *arm  { return d.arms[0] }
func (d *Driver) right() *arm { return d.arms[1] }

func (d *Driver) arm(key string) *arm {
	if i := slices.IndexFunc(d.arms[:], func(a *arm) bool { return a.key == key }); i >= 0 {
		return d.arms[i]
	}
	return nil
}

// write outputs a packet if it is permitted, and reports whether it is. All packets use this method.
func (d *Driver) write(a *arm, data []byte) bool {
	if !permitted(data) || len(data) > a.mtu-3 {
		return false
	}
	d.Write(a.key, data)
	return true
}

// Event implements driver.Driver.
func (d *Driver) Event(now int64, e driver.Event) {
	d.Tick(now)
	a := d.arm(e.Link)
	if a == nil {
		return
	}
	switch e.Kind {
	case driver.LinkUp:
		d.connected(a, e.MTU)
	case driver.LinkDown:
		a.lost()
		d.reconcile()
	case driver.Written:
		a.written(e.Problem)
	case driver.Notified:
		d.receive(a, e.Data)
	}
}

// connected initializes an arm whose link has opened.
func (d *Driver) connected(a *arm, mtu int) {
	mtu = cmp.Or(mtu, minMTU) // with a smaller MTU, writes fail
	if mtu < minMTU {
		d.Drop(a.key, problem.CodeSmallMTU, "the "+a.key+" arm offers an MTU that is too small for pictures")
		return
	}
	a.mtu = mtu
	a.settling = d.After(settleTime, func() {
		a.settling, a.up, a.missed = nil, true, 0
		a.add(&job{packets: [][]byte{{opInit, 0x01}}, tries: 1, done: func(string) {}}, false)
		d.identify(a)
		if d.mic.on && a == d.right() {
			d.setMicrophone(0x01)
		}
		if !d.beating {
			d.beating = true
			d.beat()
		}
		d.reconcile()
	})
}

// identify asks an arm for its serial number, firmware and battery.
func (d *Driver) identify(a *arm) {
	a.request([]byte{opSerial}, func(data []byte) bool {
		d.Info(driver.Info{Link: a.key, Serial: printable(data[min(len(data), 2):])})
		return true
	}, func(string) {})
	a.add(&job{packets: [][]byte{{opFirmware, 0x74}}, answer: firmwareText[0], timeout: answerTimeout, tries: 1,
		check: func(data []byte) bool {
			d.Info(driver.Info{Link: a.key, Firmware: printable(data)})
			return true
		}, done: func(string) {}}, false)
	d.askBattery(a)
}

// askBattery reads the battery level of an arm. The pair's level is the lower level of its arms.
func (d *Driver) askBattery(a *arm) {
	a.request([]byte{opBattery, 0x01}, func(data []byte) bool {
		if len(data) < 3 || data[2] > 100 {
			return false
		}
		a.battery = int(data[2])
		return true
	}, func(code string) {
		if code == "" {
			level := a.battery
			d.Info(driver.Info{Link: a.key, BatteryLevel: &level})
			d.reportBattery()
		}
	})
}

func (d *Driver) reportBattery() {
	b := glasses.Battery{Level: 100}
	for _, a := range d.arms {
		if a.battery >= 0 {
			b.Level = min(b.Level, a.battery)
		}
		b.Charging = b.Charging || a.charging
	}
	d.Sense(glasses.SimState, glasses.StatePatch{Battery: &b})
}

// beat sends heartbeats while an arm is connected, first to the left arm and, after its answer, to the right arm.
func (d *Driver) beat() {
	if !d.left().up && !d.right().up || d.closing {
		d.beating = false
		return
	}
	d.After(heartbeatEvery, d.beat)
	d.heartbeat(d.left(), func() { d.heartbeat(d.right(), func() {}) })
	if d.beats++; d.beats%batteryBeats == 0 {
		d.askBattery(d.left())
		d.askBattery(d.right())
	}
}

// heartbeat keeps one arm connected and then calls then. An arm that misses several heartbeats is dropped.
func (d *Driver) heartbeat(a *arm, then func()) {
	if !a.up || a.beating {
		then()
		return
	}
	a.beating = true
	a.beat++
	a.add(&job{packets: [][]byte{heartbeat(a.beat)}, answer: opHeartbeat, timeout: answerTimeout, tries: 1,
		check: func(data []byte) bool { return len(data) > 4 && data[4] == 0x04 },
		done: func(code string) {
			a.beating = false
			switch {
			case code == "":
				a.missed = 0
			case code != problem.CodeLost:
				if a.missed++; a.missed == missedHeartbeats {
					d.Drop(a.key, problem.CodeTimeout, "the "+a.key+" arm does not answer")
				}
			}
			then()
		}}, true)
}

// SetPanel implements driver.Driver.
func (d *Driver) SetPanel(p driver.Panel) { d.panel = p }

// Do implements driver.Driver.
func (d *Driver) Do(now int64, a device.Ask, img *image.NRGBA) {
	d.Tick(now)
	switch a.Kind {
	case device.AskShow:
		d.show(a.ID, newPicture(encodeBMP(img, d.panel)))
	case device.AskDark:
		d.show(a.ID, &picture{})
	case device.AskMicOn:
		d.listen(a.SampleRate)
	case device.AskMicOff:
		d.unlisten()
	case device.AskChunk:
		d.chunk(a)
	case device.AskPhoto, device.AskVideo, device.AskFrame:
		d.Answer(a.ID, device.Material{}, &glasses.Error{Code: glasses.CodeUnsupported, Message: "Even G1 has no camera"})
	}
}
