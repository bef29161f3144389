package assistantscript

import (
	"encoding/binary"
	"unicode"

	"github.com/service-dev/service/glasses/media"
)

// msPerCharacter is how long it takes to speak a character, as for speech.say.
const msPerCharacter = 60

// voice is the sound of a text. Each character is a distinct tone, and spaces are silent. The sound depends only on the
// text, so that tests can compare what was played.
type voice struct {
	text []rune
	rate int64
}

func voiceOf(text string, rate int) voice { return voice{[]rune(text), int64(rate)} }

// ms returns the length of the sound in milliseconds.
func (v voice) ms() int64 { return msPerCharacter * int64(len(v.text)) }

// pcm returns the sound from one time to another, both in milliseconds, as 16-bit little-endian samples.
func (v voice) pcm(from, to int64) []byte {
	first, end := from*v.rate/1000, to*v.rate/1000
	out := make([]byte, 0, 2*(end-first))
	for i := first; i < end; i++ {
		sample := int16(0)
		if r := v.text[i*1000/v.rate/msPerCharacter]; !unicode.IsSpace(r) {
			sample = 3 * media.Tone(i, int(v.rate), 200+20*(int(r)%40))
		}
		out = binary.LittleEndian.AppendUint16(out, uint16(sample))
	}
	return out
}
