//go:build !race

package render

// misreadTrees is how many trees with hidden text TestInspect_IsWhatThePixelsSay examines.
const misreadTrees = 1000

// hostileShare is the part, one in so many, of each hostile text that is shown.
const hostileShare = 1

// isCrowdedCase chooses the trees that TestInspect_PaintsABoundedNumberOfPixels inspects.
func isCrowdedCase(string, string) bool { return true }
