package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media"
)

// maxTranscriptFile limits a WebVTT file, in bytes.
const maxTranscriptFile = 64 << 10

// Microphone returns what the microphone hears for the file at path, whose content is data: a WAV, and the payload of
// sim.microphone. If data is a WAV, the transcript comes from the WebVTT file of the same name (order.vtt for
// order.wav), if there is one. If data is a WebVTT file, the WAV is loud during its texts.
func Microphone(
	ctx context.Context, files clientio.Files, path string, data []byte,
) (wav []byte, heard *glasses.Microphone, err error) {
	text, wav := data, data
	if !IsWebVTT(data) {
		path = strings.TrimSuffix(path, filepath.Ext(path)) + ".vtt"
		text, err = files.Read(ctx, path, maxTranscriptFile)
		if errors.Is(err, fs.ErrNotExist) {
			return wav, &glasses.Microphone{}, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	cues, err := parseWebVTT(string(text))
	if err == nil && IsWebVTT(data) {
		wav, err = speech(cues)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	}
	return wav, &glasses.Microphone{Transcript: wordsOf(cues)}, nil
}

// IsWAV reports whether data begins like a WAV file.
func IsWAV(data []byte) bool {
	return len(data) > 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WAVE"
}

const byteOrderMark = "\uFEFF"

// IsWebVTT reports whether data begins like a WebVTT file.
func IsWebVTT(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimPrefix(data, []byte(byteOrderMark)), []byte("WEBVTT"))
}

// cue is a text in a WebVTT file.
type cue struct {
	text       string
	begin, end int64 // in milliseconds
}

// wordsOf returns what is said. Texts that end at the same time belong together.
func wordsOf(cues []cue) (all []glasses.Words) {
	for _, c := range cues {
		if n := len(all); n > 0 && all[n-1].EndMs == c.end {
			all[n-1].Text += " " + c.text
			continue
		}
		all = append(all, glasses.Words{Text: c.text, EndMs: c.end})
	}
	return all
}

const (
	maxSpeechMs = 2 * 60 * 1000
	speechRate  = 8000
	speechHz    = 300
)

// speech returns a WAV with a tone during each cue. It is loud enough for scripts to detect a turn.
func speech(cues []cue) ([]byte, error) {
	if len(cues) == 0 {
		return nil, errors.New("the file contains no text that is said")
	}
	var pcm []byte // one byte per sample; 128 is silence
	for _, c := range cues {
		if c.begin >= c.end || c.end > maxSpeechMs {
			return nil, fmt.Errorf("the text %.40q must end after it begins, and within 2 minutes", c.text)
		}
		if more := int(c.end*speechRate/1000) - len(pcm); more > 0 {
			pcm = append(pcm, bytes.Repeat([]byte{128}, more)...)
		}
		for i := c.begin * speechRate / 1000; i < c.end*speechRate/1000; i++ {
			pcm[i] = byte(128 + 3*int(media.Tone(i, speechRate, speechHz))>>8) //nolint:gosec // 93 to 163
		}
	}
	wav := []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	binary.LittleEndian.PutUint32(wav[4:], uint32(36+len(pcm)))   //nolint:gosec // at most maxSpeechMs
	wav = binary.LittleEndian.AppendUint32(wav, speechRate)       // samples a second
	wav = binary.LittleEndian.AppendUint32(wav, speechRate)       // bytes a second
	wav = append(wav, 1, 0, 8, 0, 'd', 'a', 't', 'a')             // bytes and bits of a sample
	wav = binary.LittleEndian.AppendUint32(wav, uint32(len(pcm))) //nolint:gosec // at most maxSpeechMs
	return append(wav, pcm...), nil
}

var (
	cueTimes = regexp.MustCompile(`^(\S+)[ \t]+-->[ \t]+(\S+)`)
	cueTime  = regexp.MustCompile(`^(?:(\d{2,4}):)?([0-5]\d):([0-5]\d)\.(\d{3})$`)
	cueTag   = regexp.MustCompile(`<[^>]*>`)
)

// parseWebVTT returns the texts of a WebVTT file (https://www.w3.org/TR/webvtt1/). It ignores styles, regions, comments
// and settings.
func parseWebVTT(file string) ([]cue, error) {
	file = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(file, byteOrderMark))
	blocks := strings.Split(file, "\n\n")
	if name, _, _ := strings.Cut(blocks[0], "\n"); name != "WEBVTT" && !strings.HasPrefix(name, "WEBVTT ") &&
		!strings.HasPrefix(name, "WEBVTT\t") {
		return nil, errors.New("the file must begin with the line WEBVTT")
	}
	if strings.Contains(blocks[0], "-->") {
		return nil, errors.New("an empty line must follow the line WEBVTT")
	}
	var all []cue
	for _, block := range blocks[1:] {
		lines := strings.Split(strings.Trim(block, "\n"), "\n")
		if len(lines) > 1 && !strings.Contains(lines[0], "-->") { // the cue's identifier
			lines = lines[1:]
		}
		times := cueTimes.FindStringSubmatch(strings.TrimSpace(lines[0]))
		if times == nil {
			if strings.Contains(lines[0], "-->") {
				return nil, fmt.Errorf("%q is not a line such as 00:00.000 --> 00:00.900", lines[0])
			}
			continue
		}
		begin, err := parseCueTime(times[1])
		if err != nil {
			return nil, err
		}
		end, err := parseCueTime(times[2])
		if err != nil {
			return nil, err
		}
		text := html.UnescapeString(cueTag.ReplaceAllString(strings.Join(lines[1:], " "), ""))
		if words := strings.Fields(text); len(words) > 0 {
			all = append(all, cue{strings.Join(words, " "), begin, end})
		}
	}
	return all, nil
}

// parseCueTime returns a time such as 01:02.345 or 00:01:02.345 in milliseconds.
func parseCueTime(text string) (int64, error) {
	parts := cueTime.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("%q is not a time such as 00:00.900 or 00:00:00.900", text)
	}
	var n [4]int64
	for i, digits := range parts[1:] {
		if digits != "" {
			n[i], _ = strconv.ParseInt(digits, 10, 64) // never fails: at most four digits
		}
	}
	return ((n[0]*60+n[1])*60+n[2])*1000 + n[3], nil
}
