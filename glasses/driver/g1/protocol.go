package g1

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// Opcodes of the commands that this driver sends, which are the first byte of each packet. Unless a value names another
// source, it is from Even Realities' EvenDemoApp (README.md, lib/services/proto.dart,
// lib/services/features_services.dart).
const (
	opInit       = 0x4D
	opHeartbeat  = 0x25
	opMicrophone = 0x0E
	opPicture    = 0x15
	opPictureEnd = 0x20
	opPictureCRC = 0x16
	opExit       = 0x18
	opBattery    = 0x2C // community notes in AGiXT/mobile, "Even Realities G1 BLE Protocol.txt"
	opSerial     = 0x34
	opFirmware   = 0x23 // with 0x74, same notes; the answer is plain text that begins with "net build time"
)

// First bytes of messages that the glasses send without a request.
const (
	opEvent = 0xF5
	opAudio = 0xF1
)

// Values of the second byte of an answer (EvenDemoApp, lib/ble_manager.dart).
const (
	answerOK       = 0xC9
	answerContinue = 0xCB
)

// Times in ms. Times from EvenDemoApp are marked.
const (
	settleTime     = 350    // after a connection, before the first write (MentraOS, G1.kt)
	heartbeatEvery = 8000   // EvenDemoApp; without one the glasses disconnect after 32 s
	answerTimeout  = 1500   // EvenDemoApp, heartbeat
	endTimeout     = 3000   // EvenDemoApp, end of a picture
	crcTimeout     = 3000   // EvenDemoApp waits 1 s; a busy arm may need longer
	packetPause    = 5      // EvenDemoApp on Android; 8 on iOS
	missingArm     = 10_000 // how long a picture waits for an arm that is down
	repaintPause   = 300    // after a gesture that closes the picture; guessed
)

// Limits.
const (
	maxTries         = 3
	maxTransfers     = 2   // attempts for a picture if the glasses report a wrong checksum
	missedHeartbeats = 3   // after which a link counts as dead
	pictureChunk     = 194 // bytes of the file in a packet
	minMTU           = pictureChunk + 6 + 3
	batteryBeats     = 8 // heartbeats between two battery requests
)

// firmwareText is the start of the answer to opFirmware, which has no header.
const firmwareText = "net build time"

// pictureAddress precedes the file in its first packet and in the checksum.
var pictureAddress = []byte{0x00, 0x1C, 0x00, 0x00}

// picture is a file to show, split into packets. The zero value means a dark panel.
type picture struct {
	packets [][]byte
	crc     []byte // the checksum command, over the address and the file
}

// isDark reports whether the picture is the dark panel.
func (p *picture) isDark() bool { return p.packets == nil }

func (p *picture) equal(other *picture) bool { return other != nil && bytes.Equal(p.crc, other.crc) }

// newPicture splits a BMP file into packets.
func newPicture(file []byte) *picture {
	p := &picture{}
	for n := 0; n*pictureChunk < len(file); n++ {
		packet := []byte{opPicture, byte(n)}
		if n == 0 {
			packet = append(packet, pictureAddress...)
		}
		p.packets = append(p.packets, append(packet, file[n*pictureChunk:min(len(file), (n+1)*pictureChunk)]...))
	}
	sum := crc32.Update(crc32.ChecksumIEEE(pictureAddress), crc32.IEEETable, file)
	p.crc = binary.BigEndian.AppendUint32([]byte{opPictureCRC}, sum)
	return p
}

func heartbeat(seq byte) []byte { return []byte{opHeartbeat, 0x06, 0x00, seq, 0x04, seq} }

// permitted reports whether a packet may be sent. It is an allow list: whatever the rest of the driver does, packets
// for settings, files, updates and the reset of the glasses (0x23 0x72) are not sent.
func permitted(data []byte) bool {
	if len(data) == 0 {
		return false
	}
	switch data[0] {
	case opPicture:
		return len(data) > 2 && len(data) <= pictureChunk+6
	case opPictureCRC:
		return len(data) == 5
	case opHeartbeat:
		return len(data) == 6 && bytes.Equal(data, heartbeat(data[3]))
	}
	for _, one := range [][]byte{
		{opInit, 0x01}, {opMicrophone, 0x00}, {opMicrophone, 0x01}, {opPictureEnd, 0x0D, 0x0E}, {opExit},
		{opBattery, 0x01}, {opSerial}, {opFirmware, 0x74},
	} {
		if bytes.Equal(data, one) {
			return true
		}
	}
	return false
}
