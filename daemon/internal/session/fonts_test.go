package session

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/glasses/render/fonts"
)

// The page of a browser session does not have the fonts that the user added: its characters are missing here as well,
// and the display reports that a local session has them.
func TestDisplay_OfABrowserSessionLacksAddedFonts(t *testing.T) {
	path, err := filepath.Abs("../../../glasses/render/fonts/testdata/cherokee-regular.ttf")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	displayOf := func(id string) Display {
		model, ok := ModelOf(id, glasses.DefaultDeviceModel)
		if !ok {
			t.Fatal("no model")
		}
		view := render.Clamp(model, glasses.View{Tree: &glasses.Node{Type: glasses.NodeText, Text: "ᏣᎳᎩ"}})
		return NewDisplay(model, glasses.FreshState(), view)
	}
	const browser, local = "ses_abcdefgh234567abcdef", "loc_abcdefgh234567abcdef"
	if displayOf(browser).IsMissingAddedFont() {
		t.Error("an added font is reported although none was added")
	}
	fonts.SetAdded([]fonts.Added{{Name: "Cherokee", SHA256: fonts.Hash(data), File: path}}, nil)
	t.Cleanup(func() { fonts.SetAdded(nil, nil) })
	if d := displayOf(local); len(d.Findings()) > 0 || len(d.Text()) != 1 || d.IsMissingAddedFont() {
		t.Errorf("a local session: findings %v; want the text drawn with the added font", d.Findings())
	}
	d := displayOf(browser)
	if len(d.Findings()) != 1 || len(d.Text()) != 0 || !d.IsMissingAddedFont() {
		t.Errorf("a browser session: findings %v; want the font reported as missing here", d.Findings())
	}
	if len(Misfits(d.View.Tree, d.On(glasses.Models()), false)) == 0 {
		t.Error("the tree fits other models in a browser session, want its characters missing")
	}
}
