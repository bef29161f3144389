package frame

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// UUIDs and control bytes (brilliantlabsAR/frame-codebase, source/application/bluetooth.c;
// brilliantlabsAR/halo-firmware, applications/halo/PROTOCOL.md 3.1). The driver never sends the bytes 02, 05, 06 and
// 07, which make a Halo reboot, remove its files or end its Lua.
const (
	service = "7a230001-5475-a6a4-654c-8431f6ad49c4"
	write   = "7a230002-5475-a6a4-654c-8431f6ad49c4"
	notify  = "7a230003-5475-a6a4-654c-8431f6ad49c4"

	byteData    = 0x01
	byteBreak   = 0x03
	byteRestart = 0x04
)

// Limits of the link, in bytes.
const (
	maxMTUFrame = 247 // frame-codebase, source/application/bluetooth.h
	maxMTUHalo  = 512 // halo-firmware, PROTOCOL.md 3.1.1
	minMTU      = 185 // minimum MTU of common computers and phones; boot.lua needs less
)

// Operations of boot.lua.
const (
	opBegin      = 'b'
	opTile       = 't'
	opShow       = 's'
	opMicrophone = 'm'
	opPhoto      = 'p'
)

// First bytes of the data that boot.lua sends.
const (
	saysAck     = 'A'
	saysTap     = 'T'
	saysButton  = 'K'
	saysBattery = 'B'
	saysTurn    = 'I'
	saysSound   = 'M'
	saysPhoto   = 'P'
	saysEnd     = 'E' // of a photo
	saysReady   = 'R'
)

// Times in ms, none of which is documented.
const (
	breakTime   = 60  // until an interrupted program has ended
	lineTimeout = 500 // for a REPL line; the REPL polls every 10 ms
	dataTimeout = 500 // an acknowledgement takes one or two connection intervals of 15 ms
	leaveTries  = 2
	leaveTime   = 250 // for the line that clears the panel
	maxTries    = 4
	maxBoots    = 5 // consecutive boots after which the link counts as dead
)

//go:embed boot.lua
var bootText string

// readyLine starts the program boot.lua. leaveLine undoes the effects of the program.
const (
	readyLine = "S.put('R') pcall(S.battery) S.loop()"
	leaveLine = "if S and S.stop then S.stop() S.dark() end print(0)"
)

// bootLines contains the lines for the REPL. Each prints its number after it has run.
var bootLines = func() (lines []string) {
	for line := range strings.Lines(bootText) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			lines = append(lines, fmt.Sprintf("%s print(%d)", line, len(lines)+1))
		}
	}
	return lines
}()

// permitted reports whether a value may be written. It is an allow list: whatever the rest of the driver does, the REPL
// receives only the constant lines of this file and of boot.lua.
func permitted(data []byte) bool {
	if len(data) == 0 {
		return false
	}
	if data[0] == byteData {
		return len(data) > 2 && strings.IndexByte("btsmp", data[2]) >= 0
	}
	text := string(data)
	switch text {
	case string(rune(byteBreak)), string(rune(byteRestart)), readyLine, leaveLine:
		return true
	}
	return slices.Contains(bootLines, text)
}
