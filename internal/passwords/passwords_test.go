package passwords

import (
	"errors"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for length, want := range map[int]error{0: ErrLength, 9: ErrLength, 10: nil, 200: nil, 201: ErrLength} {
		if got := Check(strings.Repeat("ü", length)); !errors.Is(got, want) {
			t.Errorf("%d characters: got %v, want %v", length, got, want)
		}
	}
}
