package media

import (
	"encoding/binary"
	"errors"
)

// Sound is 16-bit mono sound. A nil Sound is a quiet, endless tone of 440 Hz.
type Sound struct {
	samples []int16
	rate    int
}

// ParseWAV decodes a WAV file: PCM with 8 or 16 bits, 1 to 8 channels (which it mixes) and 4000 to 192000 Hz.
func ParseWAV(data []byte) (*Sound, error) {
	if len(data) < 12 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WAVE" {
		return nil, errors.New("the sound is not a WAV file")
	}
	var format []byte
	for rest := data[12:]; len(rest) >= 8; {
		name, size := string(rest[:4]), int64(binary.LittleEndian.Uint32(rest[4:]))
		rest = rest[8:]
		body := rest[:min(size, int64(len(rest)))] // streamed files often declare a wrong size
		switch name {
		case "fmt ":
			format = body
		case "data":
			return parsePCM(format, body)
		}
		rest = rest[min(size+size&1, int64(len(rest))):]
	}
	return nil, errors.New("the WAV file has no data")
}

func parsePCM(format, body []byte) (*Sound, error) {
	if len(format) < 16 {
		return nil, errors.New("the WAV file does not declare its format")
	}
	code := binary.LittleEndian.Uint16(format)
	channels, rate := int(binary.LittleEndian.Uint16(format[2:])), int(binary.LittleEndian.Uint32(format[4:]))
	bits := int(binary.LittleEndian.Uint16(format[14:]))
	if code == 0xFFFE && len(format) >= 26 {
		code = binary.LittleEndian.Uint16(format[24:])
	}
	if code != 1 || channels < 1 || channels > 8 || rate < 4000 || rate > 192_000 || bits != 8 && bits != 16 {
		return nil, errors.New("the WAV file is not PCM of 8 or 16 bits, 1 to 8 channels, 4000 to 192000 Hz")
	}
	step := channels * bits / 8
	s := &Sound{samples: make([]int16, len(body)/step), rate: rate}
	for i := range s.samples {
		sum := 0
		for c := range channels {
			if bits == 8 {
				sum += (int(body[i*step+c]) - 128) << 8
			} else {
				sum += int(int16(binary.LittleEndian.Uint16(body[i*step+2*c:])))
			}
		}
		s.samples[i] = int16(sum / channels)
	}
	return s, nil
}

// Ms returns the length of the sound in milliseconds.
func (s *Sound) Ms() int64 { return int64(len(s.samples)) * 1000 / int64(s.rate) }

// toneHz is the frequency of a nil Sound.
const toneHz = 440

// Chunk returns the chunk with index n, 100 ms of 16-bit little-endian PCM at rate Hz. After the end of the sound,
// chunks are silent. A nil Sound never ends.
func (s *Sound) Chunk(n, rate int) []byte {
	count := rate / 10
	out := make([]byte, 2*count)
	for i := range count {
		binary.LittleEndian.PutUint16(out[2*i:], uint16(s.at(int64(n)*int64(count)+int64(i), rate)))
	}
	return out
}

// at returns sample i at rate Hz, interpolated between the two nearest samples.
func (s *Sound) at(i int64, rate int) int16 {
	if s == nil {
		return Tone(i, rate, toneHz)
	}
	pos := i * int64(s.rate)
	k, part := pos/int64(rate), pos%int64(rate)
	if k >= int64(len(s.samples)) {
		return 0
	}
	a, b := int64(s.samples[k]), int64(0)
	if k+1 < int64(len(s.samples)) {
		b = int64(s.samples[k+1])
	}
	return int16(a + (b-a)*part/int64(rate))
}

// Tone returns sample i of a tone of hz at rate Hz. It approximates a sine with integers (Bhaskara's formula), because
// floating-point results may differ between processors.
func Tone(i int64, rate, hz int) int16 {
	const half, loud = 1 << 14, 3000
	phase := i * int64(hz) % int64(rate) * 2 * half / int64(rate) // 0 to 2*half
	sign := int64(1)
	if phase >= half {
		phase, sign = phase-half, -1
	}
	x := phase * (half - phase)
	return int16(sign * loud * 16 * x / (5*half*half - 4*x))
}
