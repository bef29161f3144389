// Package secret generates the backend's random credentials, and the keyed hashes that are stored instead of them. It
// is independent of the purpose of a credential.
package secret

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"strings"
	"sync"
)

const (
	randomBytes = 32
	randomChars = 43 // base64url of 32 bytes, unpadded
	tailChars   = 6  // base62 of the CRC-32 of the preceding text
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// New returns a credential: the prefix (from package credential), 256 random bits and a checksum.
func New(prefix string) string {
	var b [randomBytes]byte
	rand.Read(b[:])
	body := prefix + base64.RawURLEncoding.EncodeToString(b[:])
	return body + tail(body)
}

// Valid reports whether s has the form of New(prefix) and a correct checksum. It rejects random input without a query
// to the store.
func Valid(prefix, s string) bool {
	if len(s) != len(prefix)+randomChars+tailChars || !strings.HasPrefix(s, prefix) {
		return false
	}
	body := s[:len(s)-tailChars]
	return s[len(body):] == tail(body)
}

func tail(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	var out [tailChars]byte
	for i := tailChars - 1; i >= 0; i-- {
		out[i] = base62[sum%62]
		sum /= 62
	}
	return string(out[:])
}

// Hasher computes the hashes of credentials for storage.
type Hasher struct{ macs *sync.Pool } // pool of *mac, which is expensive to create

// mac is a keyed HMAC with reusable buffers.
type mac struct {
	hash.Hash
	buf []byte
}

// NewHasher returns a Hasher with the backend's key. The configuration ensures that the key has at least 32 bytes.
func NewHasher(key []byte) Hasher {
	return Hasher{&sync.Pool{New: func() any { return &mac{Hash: hmac.New(sha256.New, key)} }}}
}

// Check returns a value that identifies the key and reveals nothing else about it.
func (h Hasher) Check() string { return h.Hash("key check", "service") }

// Hash returns the hexadecimal HMAC-SHA-256 of a credential. Equal texts of different kinds have different hashes.
func (h Hasher) Hash(kind, credential string) string {
	m := h.macs.Get().(*mac)
	m.Reset()
	m.buf = append(append(append(m.buf[:0], kind...), 0), credential...)
	m.Write(m.buf)
	clear(m.buf) // leave no part of the credential in memory
	m.buf = m.Sum(m.buf[:0])
	text := hex.EncodeToString(m.buf)
	h.macs.Put(m)
	return text
}
