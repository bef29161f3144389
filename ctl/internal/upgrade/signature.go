package upgrade

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/blake2b"
)

// A minisign signature has four lines: an untrusted comment, the signature, a trusted comment, and a signature of both.
// Keys and signatures begin with an algorithm and the key's ID. See https://jedisct1.github.io/minisign.
const (
	keyAlgorithm       = "Ed"
	prehashedAlgorithm = "ED"
	keyIDSize          = 8
	trustedComment     = "trusted comment: "
	untrustedComment   = "untrusted comment: "
)

// verify checks data against a minisign signature with a public key, one line of base64, and returns the signed
// comment. It accepts only signatures of the BLAKE2b-512 of data, which minisign has made since version 0.8.
func verify(key string, data, signature []byte) (comment string, err error) {
	public, err := decodeLine(key, len(keyAlgorithm)+keyIDSize+ed25519.PublicKeySize)
	if err != nil || string(public[:2]) != keyAlgorithm {
		return "", errors.New("the built-in public key must be a minisign key")
	}
	lines := strings.Split(string(bytes.ReplaceAll(signature, []byte("\r\n"), []byte("\n"))), "\n")
	if len(lines) < 4 || !strings.HasPrefix(lines[0], untrustedComment) || !strings.HasPrefix(lines[2], trustedComment) {
		return "", errors.New("the signature must be a minisign signature")
	}
	signed, err := decodeLine(lines[1], len(prehashedAlgorithm)+keyIDSize+ed25519.SignatureSize)
	if err != nil {
		return "", fmt.Errorf("the signature cannot be read: %w", err)
	}
	global, err := decodeLine(lines[3], ed25519.SignatureSize)
	if err != nil {
		return "", fmt.Errorf("the signature of the comment cannot be read: %w", err)
	}
	if algorithm := string(signed[:2]); algorithm != prehashedAlgorithm {
		return "", fmt.Errorf("the signature uses the unsupported algorithm %q", algorithm)
	}
	id, pk := public[2:2+keyIDSize], ed25519.PublicKey(public[2+keyIDSize:])
	if !bytes.Equal(signed[2:2+keyIDSize], id) {
		return "", errors.New("the signature was made with another key")
	}
	signed = signed[2+keyIDSize:]
	hash := blake2b.Sum512(data)
	if !ed25519.Verify(pk, hash[:], signed) {
		return "", errors.New("the signature does not match")
	}
	comment = strings.TrimPrefix(lines[2], trustedComment)
	if !ed25519.Verify(pk, append(signed, comment...), global) {
		return "", errors.New("the signature of the comment does not match")
	}
	return comment, nil
}

// signedAt returns the time in a signed comment, which minisign writes as "timestamp:SECONDS" among tab-separated
// fields.
func signedAt(comment string) (at time.Time, ok bool) {
	for field := range strings.SplitSeq(comment, "\t") {
		text, isTime := strings.CutPrefix(field, "timestamp:")
		if seconds, err := strconv.ParseInt(text, 10, 64); isTime && err == nil {
			return time.Unix(seconds, 0).UTC(), true
		}
	}
	return time.Time{}, false
}

// decodeLine decodes a line of base64, which must encode exactly size bytes.
func decodeLine(line string, size int) ([]byte, error) {
	data, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(line))
	if err == nil && len(data) != size {
		err = fmt.Errorf("must be %[2]d bytes long, not %[1]d", len(data), size)
	}
	return data, err
}
