package assistantscript

import (
	"encoding/binary"
	"strings"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

// Parameters of speech recognition. A frame of frameMs is loud if its mean amplitude is at least loudness. The default
// microphone of simulated glasses is a quieter tone.
const (
	frameMs  = 20
	loudness = 2000
)

// listener holds the input that has not been committed yet.
type listener struct {
	rate int64
	rest []byte // less than a frame

	samples   int64    // received in the conversation
	pending   int64    // samples since the last commit or clear
	words     []string // heard since the last commit or clear, at most about maxMatched bytes
	heard     int      // bytes of words
	itemID    string   // of the speech in progress; empty if there is none
	silenceMs int64    // since the speech's last loud frame
}

func (l *listener) ms() int64 { return l.samples * 1000 / l.rate }

func (l *listener) clear() {
	*l = listener{rate: l.rate, samples: l.samples}
}

// listen handles sound from the microphone. It detects turns unless the app commits its input itself.
func (c *Conversation) listen(pcm []byte, transcript string) *Failure {
	if len(pcm) == 0 || len(pcm)%2 != 0 {
		return invalid(problem.CodeInvalidValue, "audio", "audio must be 16-bit samples in base64")
	}
	l := &c.listener
	if transcript != "" && l.heard < maxMatched { // conditions examine no more
		transcript = strings.ToValidUTF8(transcript[:min(len(transcript), maxMatched-l.heard)], "")
		l.heard += len(transcript) + 1
		l.words = append(l.words, transcript)
	}
	l.rest = append(l.rest, pcm...)
	frame := int(l.rate) * frameMs / 1000 * 2
	for len(l.rest) >= frame {
		loud := isLoud(l.rest[:frame])
		l.rest = l.rest[frame:]
		l.samples += int64(frame / 2)
		l.pending += int64(frame / 2)
		c.detectTurn(loud || transcript != "")
	}
	return nil
}

func isLoud(frame []byte) bool {
	sum := 0
	for i := 0; i < len(frame); i += 2 {
		sample := int(int16(binary.LittleEndian.Uint16(frame[i:])))
		sum += max(sample, -sample)
	}
	return sum >= loudness*len(frame)/2
}

// detectTurn begins or ends the user's turn after a frame of sound.
func (c *Conversation) detectTurn(loud bool) {
	l, detection := &c.listener, c.settings.Audio.Input.TurnDetection
	if detection == nil {
		return
	}
	switch {
	case loud && l.itemID == "":
		l.itemID, l.silenceMs = c.newID("item"), 0
		c.send("input_audio_buffer.speech_started",
			fields{"audio_start_ms": max(0, l.ms()-frameMs-detection.PrefixMs), "item_id": l.itemID})
		if detection.Interrupt && c.response != nil {
			c.cancelResponse("turn_detected")
		}
	case loud:
		l.silenceMs = 0
	case l.itemID != "":
		if l.silenceMs += frameMs; l.silenceMs < detection.SilenceMs {
			return
		}
		c.send("input_audio_buffer.speech_stopped", fields{"audio_end_ms": l.ms(), "item_id": l.itemID})
		c.commitSpeech()
		if detection.Create && c.response == nil {
			if err := c.createResponse(nil); err != nil {
				c.fail("", err)
			}
		}
	}
}

// commit ends the user's turn at the app's request.
func (c *Conversation) commit() *Failure {
	if c.listener.pending*1000 < 100*c.listener.rate {
		return invalid("input_audio_buffer_commit_empty", "", "the input has less than 100 ms of sound")
	}
	c.commitSpeech()
	return nil
}

// commitSpeech turns the input into a message of the user.
func (c *Conversation) commitSpeech() {
	l := &c.listener
	if l.itemID == "" {
		l.itemID = c.newID("item")
	}
	heard := strings.Join(l.words, " ")
	i := &item{ID: l.itemID, Type: "message", Status: "completed", Role: "user",
		Content: []part{{Type: "input_audio", Transcript: heard}}}
	ms, ended := l.pending*1000/l.rate, c.nowMs-l.silenceMs
	c.speechMs = &ended
	c.o.Log(glasses.RowAssistantHeard, glasses.AssistantHeard{Text: glasses.Spoken(heard), AudioMs: ms})
	*l = listener{rate: l.rate, samples: l.samples, rest: l.rest}
	var previous any
	if n := len(c.items); n > 0 {
		previous = c.items[n-1].ID
	}
	c.send("input_audio_buffer.committed", fields{"previous_item_id": previous, "item_id": i.ID})
	c.add(i)
	if string(c.settings.Audio.Input.Transcription) != "null" {
		c.send("conversation.item.input_audio_transcription.completed", fields{"item_id": i.ID, "content_index": 0,
			"transcript": heard, "usage": fields{"type": "duration", "seconds": float64(ms) / 1000}})
	}
}
