package fonts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// addTestFonts adds copies of font files for a test, and returns the fonts and a list that collects the ignored ones.
func addTestFonts(t *testing.T, names ...string) (list []Added, ignored *[]string) {
	t.Helper()
	ignored = new([]string)
	for _, name := range names {
		data := testFont(t, name)
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		list = append(list, Added{Name: name, SHA256: Hash(data), Bold: strings.Contains(name, "bold"), File: file})
	}
	use := func() {
		SetAdded(list, func(a Added, err error) { *ignored = append(*ignored, a.Name+": "+err.Error()) })
	}
	use()
	t.Cleanup(func() { SetAdded(nil, nil) })
	return list, ignored
}

func usedNames(isBold bool) string {
	var names []string
	for f := range AddedFaces(isBold) {
		names = append(names, f.Added.Name)
	}
	return strings.Join(names, " ")
}

func TestAddedFaces_AreInOrderOfAdditionAndWeight(t *testing.T) {
	_, ignored := addTestFonts(t, "cff.otf", "cherokee-bold.woff", "cherokee-regular.ttf")
	if got := usedNames(false); got != "cff.otf cherokee-regular.ttf cherokee-bold.woff" {
		t.Error(got)
	}
	if got := usedNames(true); got != "cherokee-bold.woff cff.otf cherokee-regular.ttf" {
		t.Error(got)
	}
	if len(*ignored) > 0 {
		t.Error(*ignored)
	}
}

func TestAddedFaces_IgnoreFilesThatChanged(t *testing.T) {
	list, ignored := addTestFonts(t, "cff.otf", "cherokee-bold.woff", "cherokee-regular.ttf")
	if err := os.WriteFile(list[0].File, []byte("OTTO"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(list[1].File); err != nil {
		t.Fatal(err)
	}
	if got := usedNames(false); got != "cherokee-regular.ttf" {
		t.Error(got)
	}
	usedNames(false)
	if len(*ignored) != 2 || !strings.Contains((*ignored)[0], "cff.otf: its content has changed") {
		t.Errorf("got ignored fonts %q, want the changed and the removed one", *ignored)
	}
}

func TestDrop_StopsUsingAFont(t *testing.T) {
	_, ignored := addTestFonts(t, "cff.otf", "cherokee-regular.ttf")
	before := Generation()
	for f := range AddedFaces(false) {
		Drop(f, "index out of range")
		break
	}
	if got := usedNames(false); got != "cherokee-regular.ttf" || Generation() == before || len(*ignored) != 1 {
		t.Error(got, *ignored)
	}
}
