package fonts

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func fontFiles(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob("packs/*.woff")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d font files, %v", len(names), err)
	}
	return names
}

// Every file of the catalogue exists, every file is in the catalogue, and each can be drawn.
func TestCatalogue_NamesEveryFile(t *testing.T) {
	unnamed := map[string]bool{}
	for _, file := range fontFiles(t) {
		unnamed[strings.TrimSuffix(filepath.Base(file), ".woff")] = true
	}
	lists := [][]pack{symbols, emoji, byRegion[RegionChina]}
	for _, list := range byScript {
		lists = append(lists, list)
	}
	for _, list := range lists {
		for _, p := range list {
			for _, name := range []string{p.regular, p.bold} {
				delete(unnamed, name)
				if name == "" {
					continue
				}
				woff, err := os.ReadFile(filepath.Join("packs", name+".woff"))
				if err != nil {
					t.Fatal(err)
				}
				ttf, err := Unpack(woff)
				if err != nil {
					t.Fatal(name, err)
				}
				if f, err := parse(name, ttf); err != nil || f.Upem < 256 {
					t.Errorf("%s: %+v, %v", name, f, err)
				}
			}
		}
	}
	if len(unnamed) > 0 {
		t.Errorf("nothing draws with %v", unnamed)
	}
}

func TestUnpack_RefusesWhatIsNotWOFF(t *testing.T) {
	woff, err := os.ReadFile("packs/thai-400.woff")
	if err != nil {
		t.Fatal(err)
	}
	huge := append([]byte(nil), woff...)
	binary.BigEndian.PutUint32(huge[woffHeader+12:], maxUnpacked)
	for name, data := range map[string][]byte{"empty": nil, "other": []byte(strings.Repeat("OTTO", 20)),
		"header": woff[:woffHeader], "half": woff[:len(woff)/2], "huge": huge} {
		if _, err := Unpack(data); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	for _, name := range []string{"packs/greek-ext-400.woff", "packs/vietnamese-400.woff"} {
		woff, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(woff)
		f.Add(woff[:woffHeader+2*woffEntry])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if ttf, err := Unpack(data); err == nil && len(ttf) > maxUnpacked+4 {
			t.Fatalf("unpacked to %d bytes", len(ttf))
		}
	})
}
