package glasses_test

import (
	"testing"

	"github.com/service-dev/service/glasses"
)

func TestFinding_Message(t *testing.T) {
	const clipped = " is never completely on the panel"
	for want, f := range map[string]glasses.Finding{
		`"Milk" (tree)` + clipped:                                  {Kind: glasses.FindingClipped, Path: "tree", ID: "a", Text: "Milk"},
		`icon "check" (tree)` + clipped:                            {Kind: glasses.FindingClipped, Path: "tree", Type: "icon", Text: "check"},
		`progress (tree.children[1])` + clipped:                    {Kind: glasses.FindingClipped, Path: "tree.children[1]", Type: "progress"},
		`(tree) is a target that is never completely on the panel`: {Kind: glasses.FindingCut, Path: "tree"},
	} {
		if got := f.Message(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
