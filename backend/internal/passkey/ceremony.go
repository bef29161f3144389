package passkey

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"
)

const (
	registering = "register"
	signingIn   = "login"

	maxSealed = 8 << 10 // bytes
	maxUsed   = 10_000  // finished ceremonies that are remembered
)

// ceremony is what stands between Begin and Finish.
type ceremony struct {
	Kind    string
	Account string `json:",omitempty"`
	Until   time.Time
	Session webauthn.SessionData
}

// sealer encrypts and authenticates ceremonies (AES-256-GCM).
type sealer struct{ gcm cipher.AEAD }

func newSealer(key []byte) (sealer, error) {
	if len(key) != 32 {
		return sealer{}, fmt.Errorf("passkeys: the key has %d bytes, need 32", len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, fmt.Errorf("passkeys: %w", err)
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	return sealer{gcm}, err
}

var bound = []byte("passkey ceremony")

func (s sealer) close(c ceremony) (string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("sealing a ceremony: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.gcm.Seal(nil, nil, text, bound)), nil
}

func (s sealer) open(sealed string) (ceremony, error) {
	var c ceremony
	if len(sealed) > maxSealed {
		return c, errors.New("opening a ceremony: too long")
	}
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return c, fmt.Errorf("opening a ceremony: %w", err)
	}
	text, err := s.gcm.Open(nil, nil, raw, bound)
	if err != nil {
		return c, fmt.Errorf("opening a ceremony: %w", err)
	}
	return c, json.Unmarshal(text, &c)
}

// memory knows the challenges that were finished, until they are overdue anyway.
type memory struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// first tells whether the challenge was not finished before. A full memory takes none: better to ask again than to let
// an answer count twice.
func (m *memory) first(challenge string, until, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, used := m.until[challenge]; used {
		return false
	}
	if len(m.until) >= maxUsed {
		for c, end := range m.until {
			if !now.Before(end) {
				delete(m.until, c)
			}
		}
	}
	if len(m.until) >= maxUsed {
		return false
	}
	m.until[challenge] = until
	return true
}
