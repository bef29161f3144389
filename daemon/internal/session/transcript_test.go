package session

import (
	"reflect"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
)

func TestParseWebVTT(t *testing.T) {
	t.Parallel()
	const file = "\uFEFFWEBVTT - an order\r\n\r\nNOTE recorded\r\nin the kitchen\r\n\r\n" +
		"1\r\n00:00.100 --> 00:00.900 align:start\r\n<v Ada>We need\r\n<b>milk</b> &amp; bread\r\n\r\n\r\n" +
		"00:00:01.000 --> 00:01:02.345\r\nPlease\r\n\r\nSTYLE\r\n::cue { }\r\n"
	got, err := parseWebVTT(file)
	want := []glasses.Words{{Text: "We need milk & bread", EndMs: 900}, {Text: "Please", EndMs: 62_345}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for file, want := range map[string]string{
		"1\n00:00.000 --> 00:00.900\nhello": "must begin with the line WEBVTT",
		"WEBVTT\n\n00:00,000 --> 00:00,900": `"00:00,900" is not a time`,
		"WEBVTT\n00:00.000 --> 00:00.900":   "an empty line must follow",
		"WEBVTT\n\n0 -->":                   `"0 -->" is not a line`,
	} {
		if _, err := parseWebVTT(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got the error %v, want %s", file, err, want)
		}
	}
}

func FuzzParseWebVTT(f *testing.F) {
	f.Add("WEBVTT\n\n00:00.000 --> 00:00.900\nhello")
	f.Fuzz(func(t *testing.T, file string) {
		words, err := parseWebVTT(file)
		for _, w := range words {
			if err != nil || w.Text == "" || w.EndMs < 0 {
				t.Errorf("got %+v, %v", w, err)
			}
		}
	})
}
