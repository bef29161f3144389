//go:build !race

package render

// misreadTrees is how many trees with hidden text TestInspect_IsWhatThePixelsSay examines.
const misreadTrees = 1000
