package google

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"math/big"
	"strings"

	"github.com/go-json-experiment/json"
)

// Google encrypts and signs tokens in one way: a JWE (A256KW, A256GCM) that contains a JWS (ES256), both in the compact
// form. No other algorithm is accepted, so a token cannot choose a weaker one.

const (
	keySize  = 32 // bytes of each AES key
	nonceLen = 12
	tagSize  = 16
	halfSize = 32 // bytes of each number of a signature
)

// open decrypts and verifies a token, and returns its payload.
func open(token string, k Keys) ([]byte, error) {
	if len(token) > MaxToken || k.verify == nil {
		return nil, Malformed
	}
	signed, err := decrypt(token, k.decrypt)
	if err != nil {
		return nil, err
	}
	return verify(string(signed), k.verify)
}

// split decodes the parts of a token in the compact form. header is its encoded first part.
func split(token string, n int, algorithm, encryption string) (header string, parts [][]byte, err error) {
	texts := strings.Split(token, ".")
	if len(texts) != n {
		return "", nil, Malformed
	}
	for _, text := range texts {
		part, err := decode(text)
		if err != nil || strings.Contains(text, "=") {
			return "", nil, Malformed
		}
		parts = append(parts, part)
	}
	var h struct {
		Algorithm  string   `json:"alg"`
		Encryption string   `json:"enc"`
		Zip        string   `json:"zip"`
		Critical   []string `json:"crit"`
	}
	if err := json.Unmarshal(parts[0], &h); err != nil || h.Algorithm != algorithm || h.Encryption != encryption ||
		h.Zip != "" || h.Critical != nil {
		return "", nil, Malformed
	}
	return texts[0], parts, nil
}

// decrypt returns the content of a JWE.
func decrypt(token string, key []byte) ([]byte, error) {
	header, parts, err := split(token, 5, "A256KW", "A256GCM")
	if err != nil {
		return nil, err
	}
	content, err := unwrap(parts[1], key)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(content)
	if err != nil {
		return nil, WrongDecryptionKey
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil || len(parts[2]) != nonceLen || len(parts[4]) != tagSize {
		return nil, Malformed
	}
	text, err := gcm.Open(nil, parts[2], append(parts[3], parts[4]...), []byte(header))
	if err != nil {
		return nil, WrongDecryptionKey
	}
	return text, nil
}

// unwrap decrypts a key of keySize bytes that was encrypted as in RFC 3394.
func unwrap(wrapped, key []byte) ([]byte, error) {
	const half, rounds = 8, 6
	if len(wrapped) != keySize+half {
		return nil, Malformed
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, WrongDecryptionKey
	}
	out := append([]byte(nil), wrapped...)
	check, n := out[:half], keySize/half
	var buf [aes.BlockSize]byte
	for step := rounds * n; step > 0; step-- {
		i := (step-1)%n + 1
		copy(buf[:half], check)
		copy(buf[half:], out[i*half:])
		binary.BigEndian.PutUint64(buf[:], binary.BigEndian.Uint64(buf[:])^uint64(step)) //nolint:gosec // at most 24
		block.Decrypt(buf[:], buf[:])
		copy(check, buf[:half])
		copy(out[i*half:], buf[half:])
	}
	if subtle.ConstantTimeCompare(check, []byte("\xa6\xa6\xa6\xa6\xa6\xa6\xa6\xa6")) != 1 {
		return nil, WrongDecryptionKey
	}
	return out[half:], nil
}

// verify returns the content of a JWS.
func verify(token string, key *ecdsa.PublicKey) ([]byte, error) {
	_, parts, err := split(token, 3, "ES256", "")
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256([]byte(token[:strings.LastIndexByte(token, '.')]))
	signature := parts[2]
	if len(signature) != 2*halfSize || !ecdsa.Verify(key, digest[:], new(big.Int).SetBytes(signature[:halfSize]),
		new(big.Int).SetBytes(signature[halfSize:])) {
		return nil, WrongSignature
	}
	return parts[1], nil
}
