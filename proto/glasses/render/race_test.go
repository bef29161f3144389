//go:build race

package render

// misreadTrees is how many trees with hidden text TestInspect_IsWhatThePixelsSay examines. Each takes ten times as long
// with the race detector.
const misreadTrees = 40
