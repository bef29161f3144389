package frame

import (
	"encoding/binary"
	"math"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/driver"
)

// heard processes data that boot.lua sends without a request.
func (d *Driver) heard(kind byte, data []byte) {
	switch kind {
	case saysTap, saysButton:
		if in := inputOf(kind, data[0]); in != "" {
			d.Sense(glasses.SimInput, glasses.Input{Kind: in})
		}
	case saysBattery:
		if len(data) == 2 && data[0] <= 100 {
			level := int(data[0])
			d.Info(driver.Info{Link: Main, BatteryLevel: &level})
			d.Sense(glasses.SimState, glasses.StatePatch{Battery: &glasses.Battery{Level: level, Charging: data[1] != 0}})
		}
	case saysTurn:
		if len(data) == 4 {
			d.turned(int16(binary.BigEndian.Uint16(data)), int16(binary.BigEndian.Uint16(data[2:])))
		}
	case saysSound:
		d.mic.sound(data)
		d.mic.give(d)
	case saysPhoto, saysEnd:
		d.camera.piece(d, data, kind == saysEnd)
	}
}

// inputOf returns the input kind for a touch. The letters are the first ones of single, double, triple and long. A
// Frame reports only single taps. There is no input kind for a triple tap, which counts as holding, like a long press
// of the button.
func inputOf(touched, letter byte) string {
	switch {
	case letter == 's' && touched == saysButton:
		return glasses.InputSelect
	case letter == 's':
		return glasses.InputTap
	case letter == 'd':
		return glasses.InputDoubleTap
	case letter == 't', letter == 'l':
		return glasses.InputHold
	}
	return ""
}

// turned reports the gravity vector that follows from the orientation of the head. pitch and roll are in tenths of a
// degree. The glasses have no gyroscope.
func (d *Driver) turned(pitch, roll int16) {
	p, r := float64(pitch)/10*math.Pi/180, float64(roll)/10*math.Pi/180
	mg := func(v float64) int { return int(math.Round(1000 * v)) }
	d.Sense(glasses.SimMotion, glasses.Motion{
		AX: mg(-math.Sin(p)), AY: mg(math.Cos(p) * math.Sin(r)), AZ: mg(math.Cos(p) * math.Cos(r)),
	})
}
