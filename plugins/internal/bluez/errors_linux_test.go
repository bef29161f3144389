package bluez

import "testing"

// Every error of BlueZ and D-Bus has a hint.
func TestHints_ExistForEachCode(t *testing.T) {
	for name, code := range codes {
		if hints[code] == "" {
			t.Errorf("%s: the code %s has no hint", name, code)
		}
	}
}
