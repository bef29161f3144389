//go:build race

package render

// misreadTrees is how many trees with hidden text TestInspect_IsWhatThePixelsSay examines. With the race detector each
// tree takes ten times as long.
const misreadTrees = 25

// graphicsOfEach is how many graphics of each type and visibility TestInspect_GraphicsAreWhatThePixelsSay needs.
const graphicsOfEach = 3

// hostileShare is the divisor of the length of each hostile text: the tests use only that fraction of it.
const hostileShare = 16

// isCrowdedCase chooses the trees that TestInspect_PaintsABoundedNumberOfPixels inspects: the trees that paint the
// most on a panel with antialiasing and on a panel without it.
func isCrowdedCase(tree, model string) bool {
	if model == "rayban_display" {
		return tree == "captions in a row"
	}
	return tree == "veils over texts"
}
