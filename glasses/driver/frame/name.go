package frame

import (
	"regexp"
	"sync"
)

// Prefixes of the advertised names, by model.
const (
	framePrefix = "Frame "
	haloPrefix  = "Halo "
)

// Glasses advertise their model and one byte of their address (docs.brilliant.xyz/frame, "Talking to Frame Over
// Bluetooth"; halo-firmware, PROTOCOL.md 1).
var (
	frameName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + framePrefix + `[0-9A-F]{2}$`) })
	haloName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + haloPrefix + `[0-9A-F]{2}$`) })
)

// PairFrame reports whether an advertised name is the name of a Frame. The pair has the same name, and its only link is
// Main.
func PairFrame(advertised string) (pair, link string, ok bool) { return match(frameName(), advertised) }

// PairHalo is like PairFrame, but for a Halo.
func PairHalo(advertised string) (pair, link string, ok bool) { return match(haloName(), advertised) }

func match(name *regexp.Regexp, advertised string) (pair, link string, ok bool) {
	if !name.MatchString(advertised) {
		return "", "", false
	}
	return advertised, Main, true
}
