// Package frame emulates the glasses of Brilliant Labs: Frame, and optionally Halo. It runs the Lua code that a
// client sends in a real interpreter, lua5.4, with the frame library of device.lua and virtual time.
//
// Sources, by the names that comments use:
//   - firmware: brilliantlabsAR/frame-codebase, source/application
//   - halo: brilliantlabsAR/halo-firmware, applications/halo/PROTOCOL.md, BLE_SERVICES.md, LUA_RUNTIME.md, PAIRING.md
//   - docs: docs.brilliant.xyz/frame/building-apps-lua
package frame

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math/rand/v2"
	"strings"

	"github.com/service-dev/service/test/glassestest/peripheral"
	"github.com/service-dev/service/test/glassestest/peripheral/link"
)

// Services and characteristics (firmware: bluetooth.c; halo: BLE_SERVICES.md).
const (
	ServiceUUID  = "7a230001-5475-a6a4-654c-8431f6ad49c4"
	WriteUUID    = "7a230002-5475-a6a4-654c-8431f6ad49c4"
	NotifyUUID   = "7a230003-5475-a6a4-654c-8431f6ad49c4"
	VideoUUID    = "7a230004-5475-a6a4-654c-8431f6ad49c4"
	AudioInUUID  = "7a230005-5475-a6a4-654c-8431f6ad49c4"
	AudioOutUUID = "7a230006-5475-a6a4-654c-8431f6ad49c4"
	BatteryUUID  = "00002a19-0000-1000-8000-00805f9b34fb"
	PowerUUID    = "00002a1a-0000-1000-8000-00805f9b34fb"
	UpdateUUID   = "da2e7828-fbce-4e01-ae9e-261174997c48"

	batteryServiceUUID = "0000180f-0000-1000-8000-00805f9b34fb"
	updateServiceUUID  = "8d53dc1d-1db7-4cd3-868b-8a527460aa84"
)

const (
	maxMTUFrame = 247 // firmware: bluetooth.h
	maxMTUHalo  = 512 // halo: PROTOCOL.md 3.1.1

	pairingWindow = 60_000 // ms, halo: PAIRING.md 3.3
	dataQueue     = 4096   // bytes, halo: PROTOCOL.md, frame.bluetooth.receive_callback

	// The REPL checks for a line every 10 ms (firmware: luaport.c). The delay between the arrival of data and Lua's
	// hook is the duration of a library call, which is a guess. One notification is sent per connection interval of
	// 15 ms (firmware: bluetooth.c), although more may be possible.
	defaultREPLTime   = 10
	defaultHookTime   = 5
	defaultNotifyTime = 15
)

// ErrResources is returned by a write to a Halo whose queue is full.
var ErrResources = errors.New("insufficient resources: the device's queue is full")

// Options describe a device. The zero value is a healthy Frame without a bond.
type Options struct {
	// Halo selects a Halo instead of a Frame.
	Halo bool
	// Number is the last byte of the address, which is part of the name.
	Number byte
	// Main is the Lua code of the owner's main.lua, which runs after each start.
	Main string
	// BondedElsewhere stores a bond with another client.
	BondedElsewhere bool
	// HookTime, REPLTime and NotifyTime are delays in ms: between the arrival of data and its callback, before a line
	// runs, and between two notifications. 0 means the default, a negative value no delay.
	HookTime, REPLTime, NotifyTime int
	// LoseNotification is the probability that a notification is lost, and Drop that a write ends the connection;
	// both use Seed. AwayMs is the time after a drop until the device advertises again.
	LoseNotification, Drop float64
	AwayMs                 int64
	Seed                   uint64
}

// Device is a Frame or Halo. It is not safe for concurrent use.
type Device struct {
	peripheral.Record
	*link.Link
	options    Options
	lua        *lua
	random     *rand.Rand
	bonded     bool // with the client
	bondedElse bool // with another client
	windowEnds int64
	wake       int64 // when Lua continues by itself; negative means never
	queued     int   // bytes that a Halo's Lua has not received yet
	received   int
	battery    int
	charging   bool
	panel      panel
	photos     []Photo
	microphone Microphone
}

var _ peripheral.Peripheral = (*Device)(nil)

// Photo is a picture that Lua requested from the camera.
type Photo struct {
	At         int64
	Resolution int
	Quality    string
}

// Microphone is the setting of the microphone. Rate is 0 while it is off.
type Microphone struct{ Rate, Depth int }

// New starts a device. It fails if lua5.4 is not installed. The caller must close the device.
func New(ctx context.Context, o Options) (*Device, error) {
	d := &Device{options: o, bondedElse: o.BondedElsewhere, battery: 80, wake: -1}
	d.random = rand.New(rand.NewPCG(o.Seed, 1))
	model, services := "Frame", frameServices()
	d.panel = newPanel(640, 400, false)
	if o.Halo {
		model, services = "Halo", haloServices()
		d.panel = newPanel(256, 256, true)
	}
	address := fmt.Sprintf("C0:02:00:00:00:%02X", o.Number)
	d.Link = link.New(peripheral.Advertisement{
		Address: address, Name: fmt.Sprintf("%s %02X", model, o.Number), Services: []string{ServiceUUID}, RSSI: -55,
	}, services)
	d.Up, d.Down = d.up, d.down
	var err error
	if d.lua, err = startLua(ctx); err != nil {
		return nil, err
	}
	d.run("main", o.Main)
	d.run("start", fmt.Sprintf("%s %d %d %d", strings.ToLower(model), ms(o.HookTime, defaultHookTime),
		ms(o.REPLTime, defaultREPLTime), ms(o.NotifyTime, defaultNotifyTime)))
	d.set("state.address = %q", address)
	return d, nil
}

func ms(option, fallback int) int {
	if option == 0 {
		return fallback
	}
	return max(option, 0)
}

func frameServices() []peripheral.Service {
	return []peripheral.Service{{UUID: ServiceUUID, Characteristics: []peripheral.Characteristic{
		{UUID: WriteUUID, Flags: []string{"write", "write-without-response"}},
		{UUID: NotifyUUID, Flags: []string{"notify"}},
	}}}
}

func haloServices() []peripheral.Service {
	services := frameServices()
	services[0].Characteristics = append(services[0].Characteristics,
		peripheral.Characteristic{UUID: VideoUUID, Flags: []string{"notify"}},
		peripheral.Characteristic{UUID: AudioInUUID, Flags: []string{"write", "write-without-response"}},
		peripheral.Characteristic{UUID: AudioOutUUID, Flags: []string{"notify"}})
	battery := []peripheral.Characteristic{
		{UUID: BatteryUUID, Flags: []string{"read", "notify"}},
		{UUID: PowerUUID, Flags: []string{"read", "notify"}},
	}
	update := []peripheral.Characteristic{{UUID: UpdateUUID, Flags: []string{"write", "write-without-response", "notify"}}}
	return append(services, peripheral.Service{UUID: batteryServiceUUID, Characteristics: battery},
		peripheral.Service{UUID: updateServiceUUID, Characteristics: update})
}

// Close stops the interpreter.
func (d *Device) Close() error { return d.lua.close() }

// MaxMTU returns the largest MTU that the device agrees to.
func (d *Device) MaxMTU() int {
	if d.options.Halo {
		return maxMTUHalo
	}
	return maxMTUFrame
}

// Picture returns what the panel shows: *image.Paletted for a Frame, *image.RGBA for a Halo. ok is false while the
// display is off or shows the firmware's own screen.
func (d *Device) Picture() (picture image.Image, ok bool) { return d.panel.picture() }

// Shows returns how often a new picture appeared. It is 0 for a Halo, which draws directly.
func (d *Device) Shows() int { return d.panel.shows }

// ShownAt returns when the latest picture appeared.
func (d *Device) ShownAt() int64 { return d.panel.shownAt }

// Photos returns the pictures that Lua requested.
func (d *Device) Photos() []Photo { return d.photos }

// Microphone returns the setting of the microphone.
func (d *Device) Microphone() Microphone { return d.microphone }

// Received returns the number of values that the device received.
func (d *Device) Received() int { return d.received }

// Tap touches the temple. A Frame supports only the kind single; a Halo also supports double and triple.
func (d *Device) Tap(now int64, kind string) { d.event(now, "tap", kind) }

// Button presses a Halo's button: single, double or long.
func (d *Device) Button(now int64, kind string) { d.event(now, "button", kind) }

// OpenPairing holds a Halo's button for 5 s. It ends the connection and accepts an unknown client for 60 s.
func (d *Device) OpenPairing(now int64) {
	d.Tick(now)
	d.windowEnds = d.Now() + pairingWindow
	d.Drop(0)
}

// Battery sets the charge in percent.
func (d *Device) Battery(now int64, percent int, charging bool) {
	d.Tick(now)
	d.battery, d.charging = percent, charging
	d.set("state.battery = %d state.charging = %v", percent, charging)
	d.Notify(BatteryUUID, []byte{byte(percent)})
	d.Notify(PowerUUID, []byte{d.power()})
}

// power returns the state of the battery (halo: BLE_SERVICES.md, Battery Power State Format).
func (d *Device) power() byte {
	level, charging, discharging := byte(2), byte(2), byte(3)
	if d.battery < 10 {
		level = 3
	}
	if d.charging {
		charging, discharging = 3, 2
	}
	return level<<6 | charging<<4 | discharging<<2 | 3
}

// Direction sets the direction of the head that the motion sensor measures, in degrees.
func (d *Device) Direction(now int64, pitch, roll float64) {
	d.Tick(now)
	d.set("state.direction = {pitch = %g, roll = %g}", pitch, roll)
}

// Photograph sets the JPEG file of the following pictures and the time in ms until each is ready.
func (d *Device) Photograph(now int64, jpeg []byte, readyMs int) {
	d.Tick(now)
	d.set("state.photo_ms = %d", readyMs)
	d.run("jpeg", string(jpeg))
}

// Speak adds sound that the microphone hears once it is switched on: 16-bit little-endian samples.
func (d *Device) Speak(now int64, pcm []byte) {
	d.Tick(now)
	d.run("audio", string(pcm))
}

func (d *Device) event(now int64, kind, payload string) {
	d.Tick(now)
	d.run(kind, payload)
}

func (d *Device) set(format string, args ...any) { d.run("set", fmt.Sprintf(format, args...)) }
