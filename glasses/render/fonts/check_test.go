package fonts

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/image/font/gofont/goregular"

	"github.com/service-dev/service/internal/problem"
)

func testFont(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCheck_DescribesFonts(t *testing.T) {
	for name, want := range map[string]Info{
		"cherokee-regular.ttf": {Name: "Noto Sans Cherokee Regular", Weight: 400, Glyphs: 8},
		"cherokee-bold.woff":   {Name: "Noto Sans Cherokee Bold", Weight: 700, Glyphs: 8},
		"cff.otf":              {Name: "CFFTest", Weight: 400, Italic: true, Glyphs: 5},
	} {
		if got, err := Check(testFont(t, name)); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// without returns a font file in which the tables with these names are renamed.
func without(ttf []byte, tags ...string) []byte {
	ttf = bytes.Clone(ttf)
	for i := range int(binary.BigEndian.Uint16(ttf[4:])) {
		entry := ttf[sfntHeader+sfntEntry*i:]
		for _, tag := range tags {
			if string(entry[:4]) == tag {
				copy(entry, "none")
			}
		}
	}
	return ttf
}

// table returns a table of a font file, to change it.
func table(t *testing.T, ttf []byte, tag string) []byte {
	t.Helper()
	for i := range int(binary.BigEndian.Uint16(ttf[4:])) {
		entry := ttf[sfntHeader+sfntEntry*i:]
		if string(entry[:4]) == tag {
			return ttf[binary.BigEndian.Uint32(entry[8:]):][:binary.BigEndian.Uint32(entry[12:])]
		}
	}
	t.Fatal("no table " + tag)
	return nil
}

func TestCheck_SaysWhyAFontIsRefused(t *testing.T) {
	good := testFont(t, "cherokee-regular.ttf")
	units := bytes.Clone(good)
	binary.BigEndian.PutUint16(table(t, units, "head")[18:], 1)
	glyphs := bytes.Clone(good)
	clear(table(t, glyphs, "glyf"))
	copy(table(t, glyphs, "glyf"), bytes.Repeat([]byte{0x7f}, 500))
	twice := bytes.Clone(good)
	copy(twice[sfntHeader:], "post")
	for name, c := range map[string]struct {
		data []byte
		code string
	}{
		"empty":        {nil, problem.CodeFontDamaged},
		"text":         {[]byte("this is a text"), problem.CodeFontUnsupported},
		"WOFF2":        {testFont(t, "cherokee-regular.woff2"), problem.CodeFontUnsupported},
		"collection":   {append([]byte("ttcf"), good...), problem.CodeFontUnsupported},
		"no outlines":  {without(good, "glyf", "loca"), problem.CodeFontUnsupported},
		"no cmap":      {without(good, "cmap"), problem.CodeFontDamaged},
		"truncated":    {good[:len(good)/2], problem.CodeFontDamaged},
		"half a WOFF":  {testFont(t, "cherokee-bold.woff")[:900], problem.CodeFontDamaged},
		"units":        {units, problem.CodeFontDamaged},
		"glyphs":       {glyphs, problem.CodeFontDamaged},
		"a table more": {twice, problem.CodeFontDamaged},
		"too large":    {append(bytes.Clone(good), make([]byte, MaxFile)...), problem.CodeFontTooLarge},
	} {
		var refused *problem.Error
		if _, err := Check(c.data); !errors.As(err, &refused) || refused.Code != c.code || refused.FixHint == "" {
			t.Errorf("%s: got error %+v, want code %s and a hint", name, err, c.code)
		}
	}
}

func TestPrintable_KeepsWhatCanBeSeen(t *testing.T) {
	for in, want := range map[string]string{
		"Noto  Sans\n": "Noto Sans", "a\x1b[31mb\u202ec\u200b": "a[31mbc", "\x00\u202e": "",
		strings.Repeat("ᏣᎳ ", 60): strings.TrimSpace(strings.Repeat("ᏣᎳ ", 20)),
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

// Fonts that the check accepts can be drawn: nothing panics, and the size of every glyph is limited.
func FuzzCheck(f *testing.F) {
	for _, name := range []string{"cherokee-regular.ttf", "cherokee-bold.woff", "cherokee-regular.woff2", "cff.otf"} {
		data := testFont(f, name)
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add(goregular.TTF[:2000])
	f.Fuzz(func(t *testing.T, data []byte) {
		info, err := Check(data)
		var refused *problem.Error
		switch {
		case err != nil && (!errors.As(err, &refused) || refused.FixHint == ""):
			t.Fatalf("got error %v, want a problem with a hint", err)
		case err == nil && (info.Name == "" || info.Name != printable(info.Name) || info.Weight < 1 || info.Weight > 1000):
			t.Fatalf("invalid description %+v", info)
		}
	})
}
