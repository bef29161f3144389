package render_test

import (
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

func TestTextSizes(t *testing.T) {
	for _, m := range glasses.Models() {
		sizes := render.TextSizes(m)
		if m.Panel == nil {
			if sizes != nil || render.TextSizeWords(m) != "" {
				t.Errorf("%s has no panel, but the sizes %v", m.ID, sizes)
			}
			continue
		}
		if len(sizes) != len(glasses.Styles()) {
			t.Fatalf("%s: got sizes %v, want one for each style", m.ID, sizes)
		}
		for i, s := range sizes {
			if s.Lines < 1 || s.Lines*s.Line > m.Panel.Height || i > 0 && s.Size > sizes[i-1].Size {
				t.Errorf("%s: sizes that do not fit the panel or are not in descending order: %+v", m.ID, sizes)
			}
			if m.Panel.TextLines > 0 && s.Style == glasses.StyleBody && s.Lines != m.Panel.TextLines {
				t.Errorf("%s: got %d lines of body text, want %d", m.ID, s.Lines, m.Panel.TextLines)
			}
		}
		if large, title := sizes[0], sizes[1]; large.Size < title.Size*3/2 {
			t.Errorf("%s: large has size %d and title %d, want large at least 1.5 times as large", m.ID, large.Size, title.Size)
		}
		if words := render.TextSizeWords(m); !strings.HasPrefix(words, "large ") {
			t.Errorf("%s: got %q, want it to begin with the style large", m.ID, words)
		}
	}
}
