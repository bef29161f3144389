package session

import (
	"context"
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
)

// maxTranscriptFile limits a WebVTT file, in bytes.
const maxTranscriptFile = 64 << 10

// Transcript returns the payload of sim.microphone for a sound file. It reads the transcript from the WebVTT file beside
// the sound: order.vtt for order.wav. Without that file, the payload has no transcript.
func Transcript(ctx context.Context, files clientio.Files, sound string) (*glasses.Microphone, error) {
	path := strings.TrimSuffix(sound, filepath.Ext(sound)) + ".vtt"
	data, err := files.Read(ctx, path, maxTranscriptFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &glasses.Microphone{}, nil
	}
	if err != nil {
		return nil, err
	}
	words, err := parseWebVTT(string(data))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &glasses.Microphone{Transcript: words}, nil
}

var (
	cueTimes = regexp.MustCompile(`^(\S+)[ \t]+-->[ \t]+(\S+)`)
	cueTime  = regexp.MustCompile(`^(?:(\d{2,4}):)?([0-5]\d):([0-5]\d)\.(\d{3})$`)
	cueTag   = regexp.MustCompile(`<[^>]*>`)
)

// parseWebVTT returns the texts of a WebVTT file (https://www.w3.org/TR/webvtt1/) and when each ends. It ignores
// styles, regions, comments and settings.
func parseWebVTT(file string) ([]glasses.Words, error) {
	file = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(file, "\uFEFF"))
	blocks := strings.Split(file, "\n\n")
	if name, _, _ := strings.Cut(blocks[0], "\n"); name != "WEBVTT" && !strings.HasPrefix(name, "WEBVTT ") &&
		!strings.HasPrefix(name, "WEBVTT\t") {
		return nil, errors.New("the file must begin with the line WEBVTT")
	}
	if strings.Contains(blocks[0], "-->") {
		return nil, errors.New("an empty line must follow the line WEBVTT")
	}
	var all []glasses.Words
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
		end, err := parseCueTime(times[2])
		if err != nil {
			return nil, err
		}
		text := html.UnescapeString(cueTag.ReplaceAllString(strings.Join(lines[1:], " "), ""))
		if words := strings.Fields(text); len(words) > 0 {
			all = append(all, glasses.Words{Text: strings.Join(words, " "), EndMs: end})
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
