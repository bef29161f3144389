//go:build !race

package render

// misreadTrees is how many misread trees TestInspect_IsWhatThePixelsSay meets.
const misreadTrees = 1000
