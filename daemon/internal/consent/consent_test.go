package consent

import (
	"os"
	"testing"
)

func TestDecisions(t *testing.T) {
	s := New(t.TempDir())
	if state, err := s.Get(); state != Unset || err != nil {
		t.Error("state without a file:", state, err)
	}
	for _, want := range []State{Accepted, Declined, Unset} {
		if err := s.Set(want); err != nil {
			t.Fatal(err)
		}
		if state, err := s.Get(); state != want || err != nil {
			t.Error(want, "became", state, err)
		}
	}
	_ = os.WriteFile(s.Path(), []byte("perhaps"), 0o600)
	if state, err := s.Get(); state != Unreadable || err == nil {
		t.Error("state for an unknown word:", state, err)
	}
	for _, word := range []State{"perhaps", Unreadable} {
		if s.Set(word) == nil {
			t.Errorf("Set accepted %s", word)
		}
	}
	_ = os.Remove(s.Path())
	_ = os.Mkdir(s.Path(), 0o700)
	if state, err := s.Get(); state != Unreadable || err == nil {
		t.Error("state for a directory:", state, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"accepted\n", "declined", "unset", "", "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if state, err := parse(data); err == nil && state != Accepted && state != Declined && state != Unset {
			t.Errorf("took %q", state)
		}
	})
}
