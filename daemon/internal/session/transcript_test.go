package session

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media"
)

func TestParseWebVTT(t *testing.T) {
	t.Parallel()
	const file = "\uFEFFWEBVTT - an order\r\n\r\nNOTE recorded\r\nin the kitchen\r\n\r\n" +
		"1\r\n00:00.100 --> 00:00.900 align:start\r\n<v Ada>We need\r\n<b>milk</b> &amp; bread\r\n\r\n\r\n" +
		"00:00:01.000 --> 00:01:02.345\r\nPlease\r\n\r\nSTYLE\r\n::cue { }\r\n"
	got, err := parseWebVTT(file)
	want := []cue{{"We need milk & bread", 100, 900}, {"Please", 1000, 62_345}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for file, want := range map[string]string{
		"1\n00:00.000 --> 00:00.900\nhello": "must begin with the line WEBVTT",
		"WEBVTT\n\n00:00,000 --> 00:00,900": `"00:00,000" is not a time`,
		"WEBVTT\n00:00.000 --> 00:00.900":   "an empty line must follow",
		"WEBVTT\n\n0 -->":                   `"0 -->" is not a line`,
	} {
		if _, err := parseWebVTT(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got the error %v, want %s", file, err, want)
		}
	}
}

// A WebVTT file without a sound is loud during its texts and silent between them.
func TestMicrophone_SpeaksWebVTT(t *testing.T) {
	t.Parallel()
	const file = "WEBVTT\n\n00:00.500 --> 00:01.000\nWe need\n\n00:00.800 --> 00:01.000\nmilk\n\n" +
		"00:01.300 --> 00:01.400\nPlease\n"
	wav, heard, err := Microphone(t.Context(), clientio.Files{}, "order.vtt", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	want := []glasses.Words{{Text: "We need milk", EndMs: 1000}, {Text: "Please", EndMs: 1400}}
	if !reflect.DeepEqual(heard.Transcript, want) {
		t.Errorf("got %+v, want %+v", heard.Transcript, want)
	}
	sound, err := media.ParseWAV(wav)
	if err != nil || sound.Ms() != 1400 {
		t.Fatalf("%v, a sound of %d ms, want 1400", err, sound.Ms())
	}
	var loud strings.Builder
	for n := range 16 {
		sum := 0
		for pcm := sound.Chunk(n, 16000); len(pcm) > 0; pcm = pcm[2:] {
			sum += abs(int(int16(binary.LittleEndian.Uint16(pcm))))
		}
		loud.WriteString(map[bool]string{false: ".", true: "#"}[sum/1600 > 4000])
	}
	if got, want := loud.String(), ".....#####...#.."; got != want {
		t.Errorf("the sound is loud in %s, want %s", got, want)
	}
	for file, want := range map[string]string{
		"WEBVTT\n": "no text",
		"WEBVTT\n\n00:02.000 --> 00:01.000\nhello":    "after it begins",
		"WEBVTT\n\n00:02.000 --> 00:02:01.000\nhello": "within 2 minutes",
	} {
		if _, _, err := Microphone(t.Context(), clientio.Files{}, "order.vtt", []byte(file)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: got the error %v, want %s", file, err, want)
		}
	}
}

func abs(n int) int { return max(n, -n) }

func FuzzParseWebVTT(f *testing.F) {
	f.Add("WEBVTT\n\n00:00.000 --> 00:00.900\nhello")
	f.Fuzz(func(t *testing.T, file string) {
		cues, err := parseWebVTT(file)
		for _, c := range cues {
			if err != nil || c.text == "" || c.begin < 0 || c.end < 0 {
				t.Errorf("got %+v, %v", c, err)
			}
		}
		if wav, err := speech(cues); err == nil {
			if _, err := media.ParseWAV(wav); err != nil {
				t.Error(err)
			}
		}
	})
}
