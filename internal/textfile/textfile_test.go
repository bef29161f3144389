package textfile

import (
	"bytes"
	"errors"
	"testing"
	"unicode/utf16"
)

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct{ data, text string }{
		"plain":       {`{"a":1}`, `{"a":1}`},
		"with a mark": {"\xef\xbb\xbf{}", "{}"},
		"only a mark": {"\xef\xbb\xbf", ""},
		"empty":       {"", ""},
		"two marks":   {"\xef\xbb\xbf\xef\xbb\xbf{}", "\xef\xbb\xbf{}"},
	} {
		if got, err := Decode([]byte(c.data)); err != nil || string(got) != c.text {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, c.text)
		}
	}
	for _, text := range []string{"\ufeff{}", "{}"} {
		var little, big []byte
		for _, u := range utf16.Encode([]rune(text)) {
			little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
		}
		for _, data := range [][]byte{little, big} {
			if _, err := Decode(data); !errors.Is(err, ErrUTF16) {
				t.Errorf("%q: got %v, want ErrUTF16", data, err)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbf{}"))
	f.Add([]byte("\xff\xfe{\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if text, err := Decode(data); err == nil && !bytes.HasSuffix(data, text) {
			t.Errorf("%q became %q", data, text)
		}
	})
}
