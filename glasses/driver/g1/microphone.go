package g1

import (
	"encoding/binary"

	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/driver/lc3"
)

// Format of the sound from the right arm (EvenDemoApp, android/.../BleManager.kt and liblc3.cpp). A packet consists of
// two bytes and ten LC3 frames, which are 100 ms in total.
const (
	audioPacket    = 2 + framesInPacket*lc3.FrameBytes
	framesInPacket = 10
	// maxChunks is the maximum number of chunks waiting for the session. The oldest is dropped.
	maxChunks = 10
	// maxGap is the maximum number of consecutive lost packets that are concealed.
	maxGap = 3
)

// microphone decodes the sound of the glasses.
type microphone struct {
	on      bool
	rate    int // of the session: 8000 or 16000
	decoder *lc3.Decoder
	last    byte // number of the last packet
	heard   bool // a packet has arrived
	chunks  [][]byte
	ask     *device.Ask // request for the next chunk, waiting for sound
}

// listen switches the microphone on. The glasses have only one, in the right arm.
func (d *Driver) listen(rate int) {
	d.mic = microphone{on: true, rate: rate, decoder: lc3.NewDecoder()}
	d.setMicrophone(0x01)
}

func (d *Driver) unlisten() {
	if !d.mic.on {
		return
	}
	d.mic = microphone{}
	d.setMicrophone(0x00)
}

func (d *Driver) setMicrophone(on byte) {
	d.right().request([]byte{opMicrophone, on}, nil, func(problem string) {
		if problem != "" {
			d.Note("the right arm did not switch its microphone: " + problem)
		}
	})
}

// chunk answers an Ask for the next 100 ms of sound, now or when the sound arrives.
func (d *Driver) chunk(a device.Ask) {
	d.mic.ask = &a
	d.giveChunk()
}

func (d *Driver) giveChunk() {
	if d.mic.ask == nil || len(d.mic.chunks) == 0 {
		return
	}
	d.Answer(d.mic.ask.ID, device.Material{Bytes: d.mic.chunks[0]}, nil)
	d.mic.ask, d.mic.chunks = nil, d.mic.chunks[1:]
}

// packet decodes one packet. It conceals lost packets before it, and ignores a packet that was sent twice.
func (m *microphone) packet(data []byte) {
	if !m.on || len(data) != audioPacket {
		return
	}
	seq := data[1]
	if m.heard {
		lost := seq - m.last - 1 // modulo 256
		if lost == 0xFF {
			return // the packet was sent twice
		}
		for range min(lost, maxGap) {
			m.add(nil)
		}
	}
	m.heard, m.last = true, seq
	m.add(data[2:])
}

// add decodes 100 ms of sound. A nil frames represents lost sound.
func (m *microphone) add(frames []byte) {
	pcm := make([]int16, framesInPacket*lc3.FrameSamples)
	for n := range framesInPacket {
		to := pcm[n*lc3.FrameSamples : (n+1)*lc3.FrameSamples]
		if frames == nil {
			m.decoder.Conceal(to)
			continue
		}
		_ = m.decoder.Decode(frames[n*lc3.FrameBytes:(n+1)*lc3.FrameBytes], to) // a damaged frame is concealed
	}
	m.chunks = append(m.chunks, littleEndian(pcm, lc3.SampleRate/m.rate))
	if len(m.chunks) > maxChunks {
		m.chunks = m.chunks[1:]
	}
}

// littleEndian returns samples as bytes, averaging every step samples into one.
func littleEndian(pcm []int16, step int) []byte {
	out := make([]byte, 0, 2*len(pcm)/step)
	for i := 0; i+step <= len(pcm); i += step {
		sum := 0
		for _, v := range pcm[i : i+step] {
			sum += int(v)
		}
		out = binary.LittleEndian.AppendUint16(out, uint16(int16(sum/step)))
	}
	return out
}
