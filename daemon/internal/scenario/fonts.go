package scenario

import (
	"fmt"
	"slices"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/glasses/render/fonts"
	"github.com/service-dev/service/glasses/scenario"
)

// fontsOf returns the added fonts used to draw the panels, in order of first use.
func fontsOf(shown []panel) (list []scenario.Font) {
	for _, p := range shown {
		for _, a := range render.AddedFonts(p.model, p.view) {
			list = withFont(list, scenario.Font{Name: a.Name, SHA256: a.SHA256})
		}
	}
	return list
}

// withFont returns the list with f added, unless the list already contains f or is full.
func withFont(list []scenario.Font, f scenario.Font) []scenario.Font {
	same := func(o scenario.Font) bool { return o.SHA256 == f.SHA256 }
	if slices.ContainsFunc(list, same) || len(list) == scenario.MaxFonts {
		return list
	}
	return append(slices.Clip(list), f)
}

// maxMissingFonts is the maximum number of missing fonts in a report, which agents read.
const maxMissingFonts = 3

// missingFonts returns a sentence for each font of a scenario that its session does not use for drawing.
func missingFonts(s scenario.Scenario, sessionID string) (list []string) {
	more := 0
	for _, f := range s.Fonts {
		font := fmt.Sprintf("font %s (sha256 %s) was used for the recording", f.Name, f.SHA256)
		switch {
		case session.IsLocal(sessionID) && fonts.HasAdded(f.SHA256):
		case len(list) == maxMissingFonts:
			more++
		case session.IsLocal(sessionID):
			list = append(list, font+" but is not installed: add it with `servicectl fonts add`")
		default:
			list = append(list, font+", and browser sessions draw without added fonts: run it on a local session")
		}
	}
	if more > 0 {
		list = append(list, fmt.Sprintf("%d more fonts are missing", more))
	}
	return list
}
