package g1

import (
	"regexp"
	"sync"
)

// namePrefix is the prefix of the names of both arms of every pair.
const namePrefix = "Even G1_"

// advertisedName matches the name that an arm advertises, e.g. Even G1_27_R_119A6C. The name contains the number of the
// pair, the side and part of the serial number (EvenDemoApp, android/.../BleManager.kt).
var advertisedName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(` + namePrefix + `[0-9]{1,4})_([LR])_[0-9A-Fa-f]{1,12}$`)
})

// Pair returns the name shared by both arms of a pair, e.g. "Even G1_27", and the key of this arm's link.
func Pair(advertised string) (pair, link string, ok bool) {
	m := advertisedName().FindStringSubmatch(advertised)
	if m == nil {
		return "", "", false
	}
	if m[2] == "L" {
		return m[1], Left, true
	}
	return m[1], Right, true
}
