package secret

import (
	"regexp"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/credential"
)

func TestNew(t *testing.T) {
	form := regexp.MustCompile(`^s[a-z]{2}_[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}$`)
	seen := map[string]bool{}
	prefixes := []string{credential.DeviceCode, credential.Token, credential.ProjectKey, credential.Session,
		credential.Browser}
	for _, prefix := range prefixes {
		for range 200 {
			s := New(prefix)
			if !form.MatchString(s) || !strings.HasPrefix(s, prefix) || !Valid(prefix, s) || seen[s] {
				t.Fatalf("New returned an invalid credential; want the form %s", form)
			}
			seen[s] = true
			for _, other := range append(prefixes, "") {
				if other != prefix && Valid(other, s) {
					t.Errorf("a %s credential is valid as %q, want it invalid", prefix, other)
				}
			}
		}
	}
}

// Valid detects a single wrong character at any position, without querying the store.
func TestValid_NoticesOneWrongCharacter(t *testing.T) {
	s := New(credential.Token)
	for i := range s {
		for _, c := range []byte{'A', 'b', '0', '-', ' ', 0, 0xff} {
			if wrong := s[:i] + string(rune(c)) + s[i+1:]; wrong != s && Valid(credential.Token, wrong) {
				t.Errorf("a change at position %d was not detected", i)
			}
		}
	}
}

func TestHash(t *testing.T) {
	h := NewHasher([]byte("a key of thirty-two bytes or more"))
	other := NewHasher([]byte("another key of thirty-two bytes.."))
	if got := h.Hash("token", "x"); len(got) != 64 || got != h.Hash("token", "x") {
		t.Errorf("Hash returned %q, want 64 digits and always the same", got)
	}
	for name, equal := range map[string]bool{
		"two credentials":           h.Hash("token", "x") == h.Hash("token", "y"),
		"two kinds":                 h.Hash("token", "x") == h.Hash("device_code", "x"),
		"two keys":                  h.Hash("token", "x") == other.Hash("token", "x"),
		"kind and credential moved": h.Hash("token", "x") == h.Hash("toke", "nx"),
	} {
		if equal {
			t.Errorf("%s: got the same hash, want different ones", name)
		}
	}
}

// FuzzValidSecret checks that a valid secret has the right prefix, length and checksum, and that nothing panics.
func FuzzValidSecret(f *testing.F) {
	f.Add(credential.Token, New(credential.Token))
	f.Add(credential.DeviceCode, New(credential.Token))
	f.Add("", "")
	f.Add(credential.Token, "svc_")
	f.Add(credential.Session, "sst_"+strings.Repeat("0", 49))
	f.Add(credential.Browser, strings.Repeat("\xff", 53))
	f.Fuzz(func(t *testing.T, prefix, s string) {
		if !Valid(prefix, s) {
			return
		}
		body, ok := strings.CutPrefix(s, prefix)
		if !ok || len(body) != randomChars+tailChars || Valid(prefix, s+"0") || Valid(prefix, s[:len(s)-1]) ||
			Valid("x"+prefix, s) {
			t.Fatalf("the invalid text %q is valid with the prefix %q", s, prefix)
		}
	})
}

// Hashing costs far less than a millisecond per poll.
func BenchmarkHash(b *testing.B) {
	h := NewHasher([]byte("a key of thirty-two bytes or more"))
	code := New(credential.DeviceCode)
	for b.Loop() {
		h.Hash("device_code", code)
	}
}
