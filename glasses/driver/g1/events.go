package g1

import (
	"strings"
	"unicode/utf8"

	"github.com/service-dev/service/glasses"
)

// Values of the second byte of an opEvent. Unless a value names another source, it is from the notes in AGiXT/mobile
// and from MentraOS (G1.kt).
const (
	eventDoubleTap    = 0x00 // EvenDemoApp, README.md; the glasses also close their picture
	eventTap          = 0x01 // EvenDemoApp, README.md
	eventSilentOn     = 0x04 // a triple tap
	eventSilentOff    = 0x05
	eventWorn         = 0x06 // sources disagree: worn, or taken from the case
	eventTakenOff     = 0x07 // sources disagree: taken off, or taken from the case
	eventCaseOpen     = 0x08 // in the case, its lid open
	eventCharging     = 0x09
	eventCaseClosed   = 0x0B // in the case, its lid closed
	eventHold         = 0x17 // EvenDemoApp, README.md; on the left arm it opens the glasses' own assistant
	eventMenuOpened   = 0x1E
	eventMenuClosed   = 0x1F
	eventDoubleTapped = 0x20 // a double tap that is configured to translate or transcribe
)

// receive processes a notification. It ignores unknown messages, because the firmware sends more messages than are
// documented.
func (d *Driver) receive(a *arm, data []byte) {
	switch {
	case len(data) == 0 || !a.up:
	case data[0] == opEvent && len(data) > 1:
		d.event(a, data[1], data[2:])
	case data[0] == opAudio:
		if a == d.right() {
			d.mic.packet(data)
			d.giveChunk()
		}
	case data[0] == firmwareText[0] && !strings.HasPrefix(string(data), firmwareText):
	default:
		a.answered(data)
	}
}

func (d *Driver) event(a *arm, code byte, rest []byte) {
	switch code {
	case eventTap, eventDoubleTap, eventDoubleTapped, eventHold, eventMenuOpened:
		d.leaveCase()
	}
	switch code {
	case eventTap:
		d.input(a, glasses.InputTap)
	case eventDoubleTap:
		d.input(a, glasses.InputDoubleTap)
		d.panelLost()
	case eventDoubleTapped:
		d.input(a, glasses.InputDoubleTap)
	case eventHold:
		d.input(a, glasses.InputHold)
	case eventSilentOn, eventSilentOff:
		d.silent = code == eventSilentOn
		d.panelLost()
		d.answerShow()
	case eventMenuOpened, eventMenuClosed:
		d.menu = code == eventMenuOpened
		d.panelLost()
		d.answerShow()
	case eventWorn, eventTakenOff:
		d.worn(code == eventWorn || d.inCase)
	case eventCaseOpen, eventCaseClosed:
		d.inCase = true
		for _, a := range d.arms {
			a.shown = nil
		}
		d.Sense(glasses.SimState, glasses.StatePatch{Worn: new(bool)})
		d.answerShow()
	case eventCharging:
		a.charging = len(rest) > 0 && rest[0] != 0
		d.reportBattery()
	}
}

func (d *Driver) input(a *arm, kind string) {
	d.Sense(glasses.SimInput, glasses.Input{Kind: kind, Side: a.key})
}

// leaveCase records that the glasses are in use. No event reports this reliably.
func (d *Driver) leaveCase() {
	if d.inCase {
		d.worn(true)
	}
}

func (d *Driver) worn(worn bool) {
	d.inCase = false
	d.Sense(glasses.SimState, glasses.StatePatch{Worn: &worn})
	d.reconcile()
}

// maxText is the maximum length of a text from the glasses, in bytes.
const maxText = 100

// printable returns the leading printable ASCII characters of a text from the glasses.
func printable(data []byte) string {
	text := string(data[:min(len(data), maxText)])
	end := strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7F || r == utf8.RuneError })
	if end >= 0 {
		text = text[:end]
	}
	return strings.TrimSpace(text)
}
