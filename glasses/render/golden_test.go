package render_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	_ "github.com/service-dev/service/glasses/render/fonts/packs"
)

var update = flag.Bool("update", false, "rewrite the golden pictures")

// iconRows returns a tree with every icon.
func iconRows() glasses.Node {
	tree := glasses.Node{Type: glasses.NodeColumn, Gap: 6}
	for i, name := range render.Icons() {
		if i%9 == 0 {
			tree.Children = append(tree.Children, glasses.Node{Type: glasses.NodeRow, Gap: 6})
		}
		row := &tree.Children[len(tree.Children)-1]
		row.Children = append(row.Children, glasses.Node{Type: glasses.NodeIcon, Icon: name})
	}
	return tree
}

func TestGolden(t *testing.T) {
	for _, m := range panels() {
		for _, g := range goldens() {
			file := filepath.Join("testdata", m.ID, g.name+".png")
			got := render.PNG(drawCase(m, g.name, g.of(t)))
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs; run with -update and look at it", file)
			}
		}
	}
}
