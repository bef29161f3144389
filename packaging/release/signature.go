package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"aead.dev/minisign"
)

const (
	sums      = "SHA256SUMS"
	signature = sums + ".minisig"
)

// signatures returns the artefact that signs the checksums, and therefore covers every file. Without a key, there is
// no such artefact.
func signatures(r *release) []artefact {
	if r.secretKey == "" {
		return nil
	}
	return []artefact{{signature, writeSignature}}
}

// writeSignature signs the checksums. The trusted comment, which is signed too, contains the version and, as with
// minisign, a time. The time is the commit's, so that the same key produces the same bytes. Programs refuse a list
// whose signature is too old, so the list must be signed again if no newer release appears for a long time.
func writeSignature(_ context.Context, r *release, file string) error {
	text, err := os.ReadFile(r.secretKey)
	if err != nil {
		return err
	}
	var key minisign.PrivateKey
	if minisign.IsEncrypted(text) {
		return fmt.Errorf("%s is protected by a password: make a key with `minisign -G -W`", r.secretKey)
	}
	if err := key.UnmarshalText(text); err != nil {
		return fmt.Errorf("read %s: %w", r.secretKey, err)
	}
	if err := r.checkKey(key); err != nil {
		return err
	}
	data, err := os.ReadFile(strings.TrimSuffix(file, ".minisig"))
	if err != nil {
		return err
	}
	hashed := minisign.NewReader(bytes.NewReader(data)) // hashing selects minisign's current format
	if _, err := io.Copy(io.Discard, hashed); err != nil {
		return err
	}
	trusted := fmt.Sprintf("service %s\ttimestamp:%d", r.version, r.time.Unix())
	signed := hashed.SignWithComments(key, trusted, "signature of "+sums)
	return os.WriteFile(file, append(signed, '\n'), 0o644)
}

// checkKey returns an error for a key whose signatures the programs of this release would reject.
func (r *release) checkKey(key minisign.PrivateKey) error {
	public, ok := key.Public().(minisign.PublicKey)
	if !ok {
		return fmt.Errorf("%s has no public key", r.secretKey)
	}
	if r.releaseKey == "" {
		return nil
	}
	var built minisign.PublicKey
	if err := built.UnmarshalText([]byte(r.releaseKey)); err != nil {
		return fmt.Errorf("RELEASE_KEY must be a minisign public key: %w", err)
	}
	if !built.Equal(public) {
		return fmt.Errorf("RELEASE_KEY is not the public key of %s", r.secretKey)
	}
	return nil
}
