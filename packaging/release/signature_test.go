package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// TestSignature_IsVerifiedByMinisign checks that Debian's minisign accepts signatures made in Go, and refuses a
// changed file.
func TestSignature_IsVerifiedByMinisign(t *testing.T) {
	require(t, map[string]string{"minisign": "minisign"})
	if os.Getenv("RELEASE_DIST") != "" {
		t.Skip("another key signed RELEASE_DIST")
	}
	public, _ := testKey()
	file := artefactOf(t, "SHA256SUMS")
	said := output(t, "minisign", "-V", "-P", public, "-m", file)
	if !strings.Contains(said, "Trusted comment: service "+testVersion) {
		t.Errorf("minisign said %s, want the version in the trusted comment", said)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "SHA256SUMS")
	text[0] ^= 1
	if err := os.WriteFile(changed, text, 0o644); err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), "minisign", "-V", "-P", public, "-m", changed, "-x", file+".minisig")
	if out, err := check.CombinedOutput(); err == nil {
		t.Errorf("minisign accepts a changed file: %s", out)
	}
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	cmd.Dir = dist(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
}

// TestSignature_AcceptsKeysOfMinisign signs a release with a key made by Debian's minisign, and checks that Go
// accepts signatures made by Debian's minisign.
func TestSignature_AcceptsKeysOfMinisign(t *testing.T) {
	require(t, map[string]string{"minisign": "minisign"})
	dir := t.TempDir()
	public, secret := filepath.Join(dir, "key.pub"), filepath.Join(dir, "key")
	output(t, "minisign", "-G", "-W", "-p", public, "-s", secret)
	key, err := minisign.PublicKeyFromFile(public)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, sums)
	if err := os.WriteFile(file, []byte("0000  service\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := testRelease(t)
	r.secretKey, r.releaseKey = secret, key.String()
	if err := writeSignature(context.Background(), r, file+".minisig"); err != nil {
		t.Fatal(err)
	}
	output(t, "minisign", "-V", "-p", public, "-m", file)

	output(t, "minisign", "-S", "-W", "-s", secret, "-m", file, "-x", file+".debian")
	signed, err := os.ReadFile(file + ".debian")
	if err != nil {
		t.Fatal(err)
	}
	hashed := minisign.NewReader(strings.NewReader("0000  service\n"))
	if _, err := io.Copy(io.Discard, hashed); err != nil {
		t.Fatal(err)
	}
	if !hashed.Verify(key, signed) {
		t.Error("Go refuses the signature of Debian's minisign")
	}
	// Debian's minisign reads a key made in Go.
	goPublic, goSecret := testKey()
	output(t, "minisign", "-S", "-W", "-s", goSecret, "-m", file, "-x", file+".go")
	output(t, "minisign", "-V", "-P", goPublic, "-m", file, "-x", file+".go")
	// A release whose programs would refuse its signature cannot be made.
	r.releaseKey = goPublic
	if err := writeSignature(context.Background(), r, file+".minisig"); err == nil {
		t.Error("a key other than RELEASE_KEY signs")
	}
}
