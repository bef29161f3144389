// Package g1 emulates a pair of Even Realities G1: two peripherals, one per arm. It is stricter than the firmware is
// known to be: anything that the vendor's documents and code do not show is a violation.
//
// Sources, by the names that comments use:
//   - vendor: even-realities/EvenDemoApp, README.md and the named file
//   - AGiXT: AGiXT/mobile, "Even Realities G1 BLE Protocol.txt", notes with traffic of the vendor's app
//   - wiki: JohnRThomas/EvenDemoApp, wiki page "Even Realities G1 BLE Protocol"
//   - Mentra: Mentra-Community/MentraOS, G1.kt and EvenRealitiesG1SGC.java
package g1

import (
	"fmt"
	"hash/crc32"
	"image"
	"math/rand/v2"

	"github.com/service-dev/service/test/glassestest/peripheral"
	"github.com/service-dev/service/test/glassestest/peripheral/link"
)

// The Nordic UART service (vendor: BleManager.kt).
const (
	ServiceUUID = "6e400001-b5a3-f393-e0a9-e50e24dcca9e"
	WriteUUID   = "6e400002-b5a3-f393-e0a9-e50e24dcca9e"
	NotifyUUID  = "6e400003-b5a3-f393-e0a9-e50e24dcca9e"
)

// Width and Height are the size of a full picture (vendor: README.md). The vendor's own image_1.bmp has one row less.
const (
	Width  = 576
	Height = 136
)

// Side is one arm of the glasses.
type Side int

// The arms.
const (
	Left Side = iota
	Right
)

func (s Side) String() string {
	if s == Left {
		return "left"
	}
	return "right"
}

// Options describe a pair. The zero value is a healthy pair on channel 0.
type Options struct {
	// Channel is the number that both names contain.
	Channel int
	// Unit distinguishes pairs on the same channel: it changes their addresses and the ends of their names.
	Unit int
	// Serial is up to 14 characters long. The default is S110LAAL103842.
	Serial string
	// AirTime is the time in ms that an arm needs for each packet that it receives.
	AirTime int64
	// AnswerTime is the time in ms that an arm needs to answer.
	AnswerTime int64
	// RequireBond makes the arms refuse writes with ErrAuthentication until Pair is called.
	RequireBond bool
	// Seed is the random seed of Faults with a probability.
	Seed        uint64
	FaultsLeft  Faults
	FaultsRight Faults
}

// Pair is a pair of glasses. It is not safe for concurrent use. Methods with a time first run the due steps of both
// arms.
type Pair struct {
	peripheral.Record
	serial       string
	options      Options
	arms         [2]*Arm
	silent       bool
	caseBattery  int
	microphone   bool
	audio        []byte // queued LC3 for the microphone
	audioSeq     byte
	audioRunning int // counts switches of the microphone, so that only the latest one sends
}

// New returns a pair whose arms are advertising.
func New(o Options) *Pair {
	if o.Serial == "" {
		o.Serial = "S110LAAL103842" // the example in AGiXT and wiki
	}
	p := &Pair{serial: o.Serial, options: o, caseBattery: 90}
	for _, side := range []Side{Left, Right} {
		p.arms[side] = newArm(p, side)
	}
	return p
}

// Left returns the left arm.
func (p *Pair) Left() *Arm { return p.arms[Left] }

// Right returns the right arm.
func (p *Pair) Right() *Arm { return p.arms[Right] }

// Arm returns an arm.
func (p *Pair) Arm(s Side) *Arm { return p.arms[s] }

func newArm(p *Pair, side Side) *Arm {
	letter, faults := "L", p.options.FaultsLeft
	if side == Right {
		letter, faults = "R", p.options.FaultsRight
	}
	a := &Arm{pair: p, side: side, faults: faults, battery: 80, pending: map[byte]int64{}}
	a.random = rand.New(rand.NewPCG(p.options.Seed, uint64(side)))
	name := fmt.Sprintf("Even G1_%d_%s", p.options.Channel, letter) // vendor: BleManager.kt, docs/G1_BLE_CONNECTION.en.md
	id := crc32.ChecksumIEEE([]byte(name)) + uint32(p.options.Unit)
	a.Link = link.New(peripheral.Advertisement{
		Address: fmt.Sprintf("C0:01:%02X:%02X:%02X:%02X", byte(id>>24), byte(id>>16), byte(id>>8), byte(id)),
		Name:    fmt.Sprintf("%s_%06X", name, id&0xffffff),
		RSSI:    -50 - int(side),
	}, []peripheral.Service{{UUID: ServiceUUID, Characteristics: []peripheral.Characteristic{
		{UUID: WriteUUID, Flags: []string{"write", "write-without-response"}},
		{UUID: NotifyUUID, Flags: []string{"notify"}},
	}}})
	a.Up, a.Down = a.up, a.down
	return a
}

// Shown is a picture that appeared on a panel.
type Shown struct {
	// Began is the time of the first packet, and At the time when the picture appeared.
	Began, At int64
	Image     *image.Paletted
}

// Picture returns the picture on the panel of an arm; ok is false if the panel is dark, shows text or is covered.
func (p *Pair) Picture(s Side) (picture *image.Paletted, ok bool) {
	return p.arms[s].picture, p.arms[s].picture != nil
}

// Pictures returns the latest 128 pictures shown on the panel of an arm.
func (p *Pair) Pictures(s Side) []Shown { return p.arms[s].shown }

// Lit reports whether both panels show a picture with a lit pixel at x, y.
func (p *Pair) Lit(x, y int) bool {
	for _, a := range p.arms {
		if a.picture == nil || !image.Pt(x, y).In(a.picture.Rect) || a.picture.ColorIndexAt(x, y) == 0 {
			return false
		}
	}
	return true
}

// Text returns the text on the panel of an arm.
func (p *Pair) Text(s Side) (text string, ok bool) { return p.arms[s].text, p.arms[s].text != "" }

// Microphone reports whether the microphone is on.
func (p *Pair) Microphone() bool { return p.microphone }

// Packets returns the number of values that an arm received.
func (p *Pair) Packets(s Side) int { return p.arms[s].packets }

// Heartbeats returns the number of heartbeats that an arm received.
func (p *Pair) Heartbeats(s Side) int { return p.arms[s].heartbeats }

// tick runs the steps of both arms.
func (p *Pair) tick(now int64) {
	p.arms[Left].Tick(now)
	p.arms[Right].Tick(now)
}
