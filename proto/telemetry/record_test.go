package telemetry

import "testing"

func TestIDOf_RefusesMisplacedDash(t *testing.T) {
	const id = "01939d3a-6a53-7c4e-8f00-0123456789ab"
	if _, ok := idOf(id); !ok {
		t.Error("a UUID of version 7 was refused")
	}
	for i, c := range id {
		if c == '-' {
			continue
		}
		if _, ok := idOf(id[:i] + "-" + id[i+1:]); ok {
			t.Errorf("an id with a dash at %d was accepted", i)
		}
	}
}
