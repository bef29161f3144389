package credential

import (
	"strings"
	"testing"
)

func TestHasPrefix_KnowsEveryPrefix(t *testing.T) {
	for _, prefix := range Prefixes() {
		if len(prefix) != prefixLength || !HasPrefix(prefix+"x") || !HasPrefix([]byte(strings.ToUpper(prefix))) {
			t.Errorf("%s is not recognised", prefix)
		}
		if HasPrefix(prefix[:prefixLength-1]) || HasPrefix(prefix[:prefixLength-1]+"-") || HasPrefix(" "+prefix) {
			t.Errorf("%s is recognised although the text has no complete prefix", prefix)
		}
	}
	if HasPrefix("sxx_") || HasPrefix("") {
		t.Error("text without a prefix is recognised")
	}
	if n := testing.AllocsPerRun(100, func() { HasPrefix("svc_x") }); n != 0 {
		t.Errorf("HasPrefix made %v allocations, want 0", n)
	}
}
