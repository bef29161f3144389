//go:build !race

package render

// misreadTrees is how many trees with hidden text TestInspect_IsWhatThePixelsSay examines.
const misreadTrees = 1000

// graphicsOfEach is how many graphics of each type and visibility TestInspect_GraphicsAreWhatThePixelsSay needs.
const graphicsOfEach = 10

// hostileShare is the divisor of the length of each hostile text: the tests use only that fraction of it.
const hostileShare = 1

// isCrowdedCase chooses the trees that TestInspect_PaintsABoundedNumberOfPixels inspects.
func isCrowdedCase(string, string) bool { return true }
