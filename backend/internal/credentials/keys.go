package credentials

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	keyBytes = 32
	maxKeys  = 64
)

// Keys are the wrapping keys, which encrypt data keys; the current one is first. Printing them shows only their IDs.
type Keys struct{ list []wrappingKey }

type wrappingKey struct {
	id  string // first 8 hexadecimal digits of a hash, which identify the key without revealing it
	key [keyBytes]byte
}

// ParseKeys parses the key file: one key per line, 32 bytes in hexadecimal, the current key first. It skips empty
// lines and lines that begin with #. A file without keys is valid, but then no value can be stored. Errors contain
// the number of the line, never its content.
func ParseKeys(text string) (Keys, error) {
	var keys Keys
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		raw, err := hex.DecodeString(line)
		if err != nil || len(raw) != keyBytes {
			return Keys{}, fmt.Errorf("line %d of the credential keys must be %d bytes in hexadecimal", n, keyBytes)
		}
		k := wrappingKey{id: keyID(raw)}
		copy(k.key[:], raw)
		if _, twice := keys.find(k.id); twice {
			return Keys{}, fmt.Errorf("line %d of the credential keys repeats an earlier key", n)
		}
		if len(keys.list) == maxKeys {
			return Keys{}, fmt.Errorf("there are more than %d credential keys", maxKeys)
		}
		keys.list = append(keys.list, k)
	}
	return keys, nil
}

func keyID(key []byte) string {
	sum := sha256.Sum256(append([]byte("credentials key id\x00"), key...))
	return hex.EncodeToString(sum[:4])
}

// IDs lists the IDs of the keys, the current one first.
func (k Keys) IDs() []string {
	ids := make([]string, len(k.list))
	for i, key := range k.list {
		ids[i] = key.id
	}
	return ids
}

// Empty reports whether k contains no key.
func (k Keys) Empty() bool { return len(k.list) == 0 }

// String returns the IDs of the keys.
func (k Keys) String() string { return fmt.Sprint(k.IDs()) }

// GoString returns the result of String, so that no formatting verb reveals the keys.
func (k Keys) GoString() string { return k.String() }

func (k Keys) find(id string) (wrappingKey, bool) {
	return find(k.list, func(key wrappingKey) bool { return key.id == id })
}

// String returns the key's ID.
func (k wrappingKey) String() string { return k.id }

// GoString returns the key's ID.
func (k wrappingKey) GoString() string { return k.id }
