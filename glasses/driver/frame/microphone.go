package frame

import (
	"encoding/binary"

	"github.com/service-dev/service/glasses/device"
)

const (
	// sampleRate is the sample rate of the glasses in Hz. 16-bit sound at 16000 Hz and the other traffic do not fit in
	// one notification per connection interval of 15 ms (frame-codebase, source/application/bluetooth.c).
	sampleRate = 8000
	// wideMTU is the smallest MTU for which samples have 16 bits. With a smaller one they have 8 bits.
	wideMTU = 400
	// chunkSamples is the number of samples in one AskChunk. maxSamples is the maximum number of waiting samples. The
	// oldest are dropped.
	chunkSamples = sampleRate / 10
	maxSamples   = 10 * chunkSamples
)

// microphone collects sound from the glasses.
type microphone struct {
	on    bool
	rate  int // of the session: 8000 or 16000
	depth byte
	pcm   []int16
	last  int16       // the sample before pcm
	ask   *device.Ask // request for the next chunk, waiting for samples
}

func (m *microphone) switchOn(d *Driver, rate int) {
	*m = microphone{on: true, rate: rate}
	m.resume(d)
}

func (m *microphone) switchOff(d *Driver) {
	if m.on {
		*m = microphone{}
		m.command(d, 0)
	}
}

// resume switches the microphone of the glasses on if a stream needs it.
func (m *microphone) resume(d *Driver) {
	if !m.on {
		return
	}
	m.depth = 8
	if d.link.mtu >= wideMTU {
		m.depth = 16
	}
	m.command(d, m.depth)
}

func (m *microphone) command(d *Driver, depth byte) {
	if !d.ready {
		return
	}
	d.link.urgent(data(opMicrophone, []byte{depth}, func(problem string) {
		if problem != "" {
			d.Note("the glasses did not switch their microphone: " + problem)
		}
	}))
}

// sound adds a piece of sound, which consists of a sequence number and samples. 16-bit samples are little-endian.
func (m *microphone) sound(data []byte) {
	if !m.on {
		return
	}
	data = data[1:]
	switch m.depth {
	case 8:
		for _, v := range data {
			m.pcm = append(m.pcm, int16(v)<<8)
		}
	default:
		for ; len(data) > 1; data = data[2:] {
			m.pcm = append(m.pcm, int16(binary.LittleEndian.Uint16(data)))
		}
	}
	if over := len(m.pcm) - maxSamples; over > 0 {
		m.pcm = m.pcm[over:]
	}
}

// give answers an Ask for the next 100 ms of sound after enough samples have arrived. For 16000 Hz it inserts a sample
// between every two.
func (m *microphone) give(d *Driver) {
	if m.ask == nil || len(m.pcm) < chunkSamples {
		return
	}
	out := make([]byte, 0, 4*chunkSamples)
	for _, v := range m.pcm[:chunkSamples] {
		if m.rate > sampleRate {
			out = binary.LittleEndian.AppendUint16(out, uint16((int(m.last)+int(v))/2))
		}
		out = binary.LittleEndian.AppendUint16(out, uint16(v))
		m.last = v
	}
	d.Answer(m.ask.ID, device.Material{Bytes: out}, nil)
	m.ask, m.pcm = nil, m.pcm[chunkSamples:]
}
