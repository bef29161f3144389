package session

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io/fs"
	"strings"
	"sync"

	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/internal/credential"
)

// appSecret is the secret that apps need to attach to a local session. The file contains the secret; the session's
// state contains only its hash.
type appSecret struct {
	path  string
	state *stateFile
	mu    sync.Mutex // held while the secret is read or replaced; taken before the state's locks
}

// ensure creates a secret unless the file contains a valid one.
func (s *appSecret) ensure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := statefile.Read(s.path, maxToken)
	if err == nil && s.matches(strings.TrimSpace(string(data))) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return stateProblem("read the session's app token", err)
	}
	return s.replace()
}

// renew replaces the secret.
func (s *appSecret) renew() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replace()
}

// replace writes a new secret. The caller holds mu.
func (s *appSecret) replace() error {
	secret := newSecret(credential.Session)
	if err := statefile.Write(s.path, []byte(secret)); err != nil {
		return stateProblem("write the session's app token", err)
	}
	s.state.update(func(m *meta) { m.SecretHash = hashSecret(secret) })
	if err := s.state.save(); err != nil {
		return stateProblem("save the session's app token", err)
	}
	return nil
}

// matches reports whether secret is valid.
func (s *appSecret) matches(secret string) bool {
	want := s.state.read().SecretHash
	return want != "" && subtle.ConstantTimeCompare([]byte(hashSecret(secret)), []byte(want)) == 1
}

// hashSecret returns the hash of a secret. It needs no key, because a secret has 256 random bits.
func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// newSecret returns a secret in the backend's format, which secret scanners recognise.
func newSecret(prefix string) string {
	var random [32]byte
	rand.Read(random[:])
	body := prefix + base64.RawURLEncoding.EncodeToString(random[:])
	const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var checksum [6]byte
	sum := crc32.ChecksumIEEE([]byte(body))
	for i := len(checksum) - 1; i >= 0; i-- {
		checksum[i] = base62[sum%62]
		sum /= 62
	}
	return body + string(checksum[:])
}
