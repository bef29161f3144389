package guide

import "github.com/service-dev/service/glasses"

// FocusWords describes the inputs that select a target and move the focus on a model. It returns "" for a model without
// a panel.
func FocusWords(m glasses.DeviceModel) string {
	if m.Panel == nil {
		return ""
	}
	words := "tap without x and y selects the focused target; "
	if m.SelectKind() != glasses.InputTap {
		words = m.SelectKind() + " selects the focused target, tap without x and y has no target; "
	}
	if m.MoveKind() == "" {
		return words + "no input moves the focus or scrolls: only the first target, or the tree's focus, can be selected"
	}
	return words + m.MoveKind() + " moves the focus, and scrolls where there is no next target"
}
