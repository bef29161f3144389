package g1

import (
	"bytes"
	"fmt"
)

// Commands and results (vendor: README.md and proto.dart, unless another source is named).
const (
	cmdMicrophone = 0x0E
	cmdBitmap     = 0x15
	cmdCRC        = 0x16
	cmdExit       = 0x18
	cmdEnd        = 0x20
	cmdSystem     = 0x23 // AGiXT
	cmdHeartbeat  = 0x25
	cmdSilentGet  = 0x2B // AGiXT
	cmdBattery    = 0x2C // AGiXT
	cmdLensSerial = 0x33 // wiki
	cmdSerial     = 0x34
	cmdInit       = 0x4D // vendor: BluetoothManager.swift sends 01, the vendor's app FB (AGiXT)
	cmdText       = 0x4E
	cmdAudio      = 0xF1
	cmdDebug      = 0xF4 // vendor: BleManager.kt sends 01
	cmdEvent      = 0xF5

	ok        = 0xC9
	failed    = 0xCA
	continues = 0xCB // AGiXT
)

// settings lists commands that change stored settings of the owner (AGiXT).
var settings = map[byte]string{0x01: "brightness", 0x03: "silent mode", 0x27: "wear detection"}

// firmware is the answer to 23 74, a text of 200 bytes without a header (AGiXT).
const firmware = "net build time: 2024-12-28 20:21:57, app build time 2024-12-28 20:20:45, ver 1.4.5, " +
	"JBD DeviceID 4010\n\r"

// handle executes a received value.
func (a *Arm) handle(value []byte) {
	if len(value) == 0 {
		a.violation("empty packet")
		return
	}
	command := value[0]
	switch {
	case command == cmdBitmap:
		a.handleBitmap(value)
	case command == cmdDebug:
		if a.hasLength(value, 2) {
			a.debug = value[1] == 1
		}
	case command == cmdSystem:
		a.handleSystem(value)
	case settings[command] != "":
		a.grave("%02X changes a setting of the owner: %s", command, settings[command])
		a.padded(command, ok)
	default:
		handle, known := handlers[command]
		if !known {
			a.grave("unknown command % X", value[:min(len(value), 8)])
			return
		}
		a.expectAnswer(command)
		handle(a, value)
	}
}

// handlers maps each command that an arm answers to the function that executes it.
var handlers = map[byte]func(a *Arm, value []byte){
	cmdMicrophone: (*Arm).handleMicrophone,
	cmdCRC:        (*Arm).handleCRC,
	cmdEnd:        (*Arm).handleEnd,
	cmdHeartbeat:  (*Arm).handleHeartbeat,
	cmdText:       (*Arm).handleText,
	cmdExit: func(a *Arm, value []byte) {
		if a.hasLength(value, 1) {
			a.closePanel()
			a.padded(cmdExit, ok)
		}
	},
	cmdInit: func(a *Arm, value []byte) {
		if a.hasLength(value, 2) {
			a.padded(cmdInit, ok)
		}
	},
	cmdSilentGet: func(a *Arm, value []byte) {
		if a.hasLength(value, 1) {
			mode := byte(0x0A)
			if a.pair.silent {
				mode = 0x0C
			}
			a.padded(cmdSilentGet, 0x69, mode, 0x06)
		}
	},
	cmdBattery: func(a *Arm, value []byte) {
		if a.hasLength(value, 2) && value[1] == 1 {
			a.padded(cmdBattery, 0x66, byte(a.battery), 0xE6, 0x5D, 0x24, 0, 0, 0, 1, 4, 5)
		}
	},
	cmdSerial: func(a *Arm, value []byte) {
		if a.hasLength(value, 1) {
			a.padded(append([]byte{cmdSerial, 0x34}, fmt.Sprintf("%.14s", a.pair.serial)...)...)
		}
	},
	cmdLensSerial: func(a *Arm, value []byte) {
		if a.hasLength(value, 1) {
			a.padded(append([]byte{cmdLensSerial, 0x33}, "G1R1EKT09903"...)...)
		}
	},
}

func (a *Arm) hasLength(value []byte, length int) bool {
	if len(value) != length {
		a.violation("%02X has %d bytes instead of %d", value[0], len(value), length)
	}
	return len(value) == length
}

// handleHeartbeat accepts the six-byte form of vendor: proto.dart and the two-byte form of AGiXT.
func (a *Arm) handleHeartbeat(v []byte) {
	long := len(v) == 6 && v[1] == 6 && v[2] == 0 && v[4] == 4 && v[5] == v[3]
	if !long && len(v) != 2 {
		a.violation("heartbeat % X", v[:min(len(v), 8)])
		return
	}
	a.heartbeat = a.Now()
	a.heartbeats++
	a.answer(bytes.Clone(v)...)
}

func (a *Arm) handleMicrophone(v []byte) {
	if !a.hasLength(v, 2) {
		return
	}
	if a.side == Left {
		a.violation("the microphone is in the right arm")
	}
	if a.side == Left || v[1] > 1 {
		a.padded(cmdMicrophone, failed, v[1])
		return
	}
	a.pair.setMicrophone(v[1] == 1)
	a.padded(cmdMicrophone, ok, v[1])
}

// handleSystem answers 23 74. 23 72 restarts the arm (AGiXT); the duration of its absence is a guess.
func (a *Arm) handleSystem(v []byte) {
	switch {
	case len(v) == 2 && v[1] == 0x74:
		a.expectAnswer(firmware[0])
		text := make([]byte, 200)
		copy(text, firmware)
		a.answer(text...)
	case len(v) > 1 && v[1] == 0x72:
		a.grave("23 72 restarts the glasses")
		a.Drop(5000)
	default:
		a.grave("unknown command % X", v[:min(len(v), 8)])
	}
}
