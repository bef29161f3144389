package fonts

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"
)

func sample(t testing.TB) []byte {
	t.Helper()
	woff, err := os.ReadFile("testdata/cherokee-bold.woff")
	if err != nil {
		t.Fatal(err)
	}
	return woff
}

func TestUnpack_TakesWOFFOnly(t *testing.T) {
	woff := sample(t)
	if ttf, err := Unpack(woff); err != nil {
		t.Fatal(err)
	} else if f, err := parse("sample", ttf); err != nil || !f.Has('Ꭳ') {
		t.Fatal(f, err)
	}
	huge := append([]byte(nil), woff...)
	binary.BigEndian.PutUint32(huge[woffHeader+12:], maxUnpacked)
	for name, data := range map[string][]byte{"empty": nil, "other": []byte(strings.Repeat("OTTO", 20)),
		"header": woff[:woffHeader], "half": woff[:len(woff)/2], "huge": huge} {
		if _, err := Unpack(data); err == nil {
			t.Errorf("%s was unpacked, want an error", name)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(sample(f))
	f.Add(sample(f)[:woffHeader+2*woffEntry])
	f.Fuzz(func(t *testing.T, data []byte) {
		if ttf, err := Unpack(data); err == nil && len(ttf) > maxUnpacked+4 {
			t.Fatalf("got an unpacked font of %d bytes, more than maxUnpacked", len(ttf))
		}
	})
}
