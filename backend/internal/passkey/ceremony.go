package passkey

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"
)

const (
	registering = "register"
	signingIn   = "login"

	maxSealed = 8 << 10 // bytes
)

// ceremony is the state kept between Begin and Finish.
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
		return sealer{}, fmt.Errorf("passkeys: the key is %d bytes long, want 32", len(key))
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
		return "", fmt.Errorf("seal ceremony: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.gcm.Seal(nil, nil, text, bound)), nil
}

func (s sealer) open(sealed string) (ceremony, error) {
	var c ceremony
	if len(sealed) > maxSealed {
		return c, errors.New("open ceremony: too long")
	}
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return c, fmt.Errorf("open ceremony: %w", err)
	}
	text, err := s.gcm.Open(nil, nil, raw, bound)
	if err != nil {
		return c, fmt.Errorf("open ceremony: %w", err)
	}
	return c, json.Unmarshal(text, &c)
}
