package credentials

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// keyLine returns the line of the key file for a key that repeats one byte.
func keyLine(b byte) string { return strings.Repeat(fmt.Sprintf("%02x", b), keyBytes) }

func keysOf(t *testing.T, bytes ...byte) Keys {
	t.Helper()
	var text strings.Builder
	for _, b := range bytes {
		fmt.Fprintln(&text, keyLine(b))
	}
	keys, err := ParseKeys(text.String())
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestParseKeys(t *testing.T) {
	keys, err := ParseKeys("# the current one\r\n" + keyLine(1) + "\r\n\n  " + strings.ToUpper(keyLine(0xab)) +
		"  \n# the end")
	if err != nil || len(keys.IDs()) != 2 || keys.IDs()[0] != keysOf(t, 1).IDs()[0] || keys.IDs()[1] != keysOf(t,
		0xab).IDs()[0] {
		t.Fatalf("got keys %v (error %v), want both in order", keys, err)
	}
	for _, nothing := range []string{"", "\n", "# none\n"} {
		if keys, err := ParseKeys(nothing); err != nil || !keys.Empty() {
			t.Errorf("%q: %v (%v)", nothing, keys, err)
		}
	}
	for name, text := range map[string]string{
		"line 2": keyLine(1) + "\n" + keyLine(2)[2:], "line 1": keyLine(1) + "00", "line 3": "\n\nnot a key",
		"repeats": keyLine(1) + "\n" + keyLine(1),
	} {
		if _, err := ParseKeys(text); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(),
			"0101") || strings.Contains(err.Error(), "not a key") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No formatting verb reveals a key.
func TestKeys_PrintAsIDs(t *testing.T) {
	keys := keysOf(t, 1, 2)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, what := range []any{keys, &keys, []Keys{keys}, Options{Keys: keys}} {
			if text := fmt.Sprintf(verb, what); strings.Contains(text, "0101") || strings.Contains(text, "1, 1, 1") ||
				strings.Contains(text, "1 1 1") || strings.Contains(text, "0x1, 0x1") {
				t.Errorf("%s prints a key: %s", verb, text)
			}
		}
	}
}

func TestEnvelope_OpensOnlyForOwner(t *testing.T) {
	keys := keysOf(t, 1)
	own := credentialOf("ada", "com.example.app", "openai")
	e, err := keys.seal(own, "sk-the-value")
	if err != nil {
		t.Fatal(err)
	}
	if value, err := keys.open(own, e); err != nil || value != "sk-the-value" {
		t.Fatalf("%q (%v)", value, err)
	}
	if again, _ := keys.seal(own, "sk-the-value"); again.sealed == e.sealed || again.wrapped == e.wrapped {
		t.Error("two envelopes of one value are equal")
	}
	other, err := keys.seal(credentialOf("bob", "com.example.app", "openai"), "sk-another")
	if err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() (string, error){
		"another account": func() (string, error) { return keys.open(credentialOf("bob", own.project, own.name), e) },
		"another project": func() (string, error) {
			return keys.open(credentialOf(own.account, "com.example.other", own.name),
				e)
		},
		"another provider": func() (string, error) { return keys.open(credentialOf(own.account, own.project, "google"), e) },
		"names moved":      func() (string, error) { return keys.open(credentialOf("ad", "acom.example.app", own.name), e) },
		"another's value":  func() (string, error) { return keys.open(own, envelope{other.sealed, e.wrapped, e.keyID}) },
		"another's key":    func() (string, error) { return keys.open(own, envelope{e.sealed, other.wrapped, e.keyID}) },
		"value as key":     func() (string, error) { return keys.open(own, envelope{e.sealed, e.sealed, e.keyID}) },
		"cut":              func() (string, error) { return keys.open(own, envelope{e.sealed[:20], e.wrapped, e.keyID}) },
		"another format": func() (string, error) {
			return keys.open(own, envelope{"2" + e.sealed[1:], e.wrapped,
				e.keyID})
		},
		"nothing": func() (string, error) { return keys.open(own, envelope{"", "", e.keyID}) },
	} {
		if value, err := try(); !errors.Is(err, errDamaged) || value != "" {
			t.Errorf("%s: %q (%v)", name, value, err)
		}
	}
}

func TestRewrap_KeepsValue(t *testing.T) {
	old, both, next := keysOf(t, 1), keysOf(t, 2, 1), keysOf(t, 2)
	own := credentialOf("ada", "com.example.app", "openai")
	e, err := old.seal(own, "sk-the-value")
	if err != nil {
		t.Fatal(err)
	}
	var lost *MissingKeyError
	if _, err := next.open(own, e); !errors.As(err, &lost) || lost.KeyID != old.IDs()[0] || !strings.Contains(err.Error(),
		lost.KeyID) {
		t.Errorf("open without its wrapping key: got %v, want a MissingKeyError that names it", err)
	}
	if _, err := (Keys{}).open(own, e); !errors.Is(err, ErrNotConfigured) {
		t.Errorf("open without any key: got %v, want ErrNotConfigured", err)
	}
	moved, err := both.rewrap(own, e)
	if err != nil || moved.sealed != e.sealed || moved.wrapped == e.wrapped || moved.keyID != next.IDs()[0] {
		t.Fatalf("rewrap: got key %v (error %v), want the new key and an unchanged value", moved.keyID, err)
	}
	if value, err := next.open(own, moved); err != nil || value != "sk-the-value" {
		t.Errorf("%q (%v)", value, err)
	}
	var gone *MissingKeyError
	if _, err := old.open(own, moved); !errors.As(err, &gone) {
		t.Errorf("open a rewrapped envelope with the old key: got %v, want a MissingKeyError", err)
	}
}

// FuzzParseKeys checks that an accepted file yields distinct IDs in the order of its lines, and that no error repeats
// a line.
func FuzzParseKeys(f *testing.F) {
	f.Add(keyLine(1) + "\n" + keyLine(2))
	f.Add("# x\r\n\r\n" + keyLine(255))
	f.Add("00\n")
	f.Add(strings.Repeat("\xff", 64))
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseKeys(text)
		if err != nil {
			for line := range strings.Lines(text) {
				if line = strings.TrimSpace(line); len(line) >= 16 && strings.Contains(err.Error(), line) {
					t.Fatal("the error contains a line of the file")
				}
			}
			return
		}
		ids := keys.IDs()
		if slices.Sort(ids); len(slices.Compact(ids)) != len(keys.list) || len(keys.list)*2*keyBytes > len(text) {
			t.Fatalf("got keys %v from %d bytes, want distinct keys and at most one per line", keys, len(text))
		}
	})
}
