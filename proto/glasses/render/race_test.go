//go:build race

package render

// misreadTrees is how many misread trees TestInspect_IsWhatThePixelsSay meets; with the race detector each takes ten
// times as long.
const misreadTrees = 40
