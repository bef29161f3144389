//go:build race

package render

// misreadTrees is how many trees with hidden text TestInspect_IsWhatThePixelsSay examines. Each takes ten times as long
// with the race detector.
const misreadTrees = 40

// hostileShare is the part, one in so many, of each hostile text that is shown.
const hostileShare = 16
