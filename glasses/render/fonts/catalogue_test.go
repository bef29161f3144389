package fonts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const suffix = ".ttf.zst"

// Every file of the catalogue exists and can be parsed, and every file is in the catalogue.
func TestCatalogue_NamesEveryFile(t *testing.T) {
	files, err := filepath.Glob("packs/*" + suffix)
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d font files, error %v", len(files), err)
	}
	unnamed := map[string]bool{}
	for _, file := range files {
		unnamed[strings.TrimSuffix(filepath.Base(file), suffix)] = true
	}
	unpack, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unpack.Close()
	lists := [][]pack{common, symbols, emoji, byRegion[RegionChina]}
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
				packed, err := os.ReadFile(filepath.Join("packs", name+suffix))
				if err != nil {
					t.Fatal(err)
				}
				ttf, err := unpack.DecodeAll(packed, nil)
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
		t.Errorf("the catalogue does not contain %v", unnamed)
	}
}
