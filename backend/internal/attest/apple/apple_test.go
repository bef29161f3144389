package apple_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/attest/apple"
	"github.com/service-dev/service/backend/internal/attest/attesttest"
)

const (
	app       = "ABCDE12345.com.example.app"
	challenge = "the challenge"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func hashOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// The fingerprint is the one that Apple's clients and many servers pin for "Apple App Attestation Root CA".
func TestRoot_IsApples(t *testing.T) {
	text, err := os.ReadFile("root.pem")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	sum := sha256.Sum256(block.Bytes)
	const want = "1cb9823ba28ba6ad2d33a006941de2ae4f513ef1d4e831b9f7e0fa7b6242c932"
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("the root's fingerprint is %s, want %s", got, want)
	}
}

func readBase64(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(string(bytes.ReplaceAll(text, []byte("\n"), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Apple's published example, from the "Attestation Object Validation Guide" of 2026. The certificates and the
// authenticator data are Apple's bytes; the object around them is rebuilt without the receipt, which nothing checks.
// The example was made with the challenge itself in place of its hash.
func TestVerify_AcceptsApplesExample(t *testing.T) {
	object := attesttest.Object(t, readBase64(t, "sample-leaf.b64"), readBase64(t, "sample-intermediate.b64"),
		readBase64(t, "sample-authdata.b64"))
	id, err := base64.StdEncoding.DecodeString("zgSY9YSD+7TaDXssY6WlOPVS1K3Lmk+pFhlcSWE+ZV0=")
	if err != nil {
		t.Fatal(err)
	}
	s := apple.Settings{Apps: []string{"1234567890.com.example.other", "1234567890.com.example.myapp"}}
	then, raw := time.Date(2026, 4, 21, 18, 13, 12, 0, time.UTC), []byte("example_server_challenge")
	key, err := apple.Verify(object, id, raw, s, then)
	if err != nil || key.App != s.Apps[1] || !bytes.Equal(key.ID, id) || !bytes.Equal(hashOf(string(key.Public)), id) {
		t.Fatalf("got key %+v (error %v), want Apple's", key, err)
	}
	want(t, "hashed challenge", apple.WrongChallenge, verifyErr(apple.Verify(object, id, hashOf(string(raw)), s, then)))
	want(t, "a week later", apple.ExpiredChain, verifyErr(apple.Verify(object, id, raw, s, then.AddDate(0, 0, 7))))
	s.Development = true
	want(t, "in development", apple.WrongEnvironment, verifyErr(apple.Verify(object, id, raw, s, then)))
}

func verifyErr(_ apple.Key, err error) error { return err }

func want(t *testing.T, what string, reason apple.Reason, err error) {
	t.Helper()
	if !errors.Is(err, reason) {
		t.Errorf("%s: got %v, want %s", what, err, reason)
	}
}

func TestVerify_RefusesWithReason(t *testing.T) {
	ca := attesttest.NewApple(t, now)
	s := apple.Settings{Apps: []string{app}, Root: ca.Root}
	device := func(change func(*attesttest.Device)) *attesttest.Device {
		d := attesttest.NewDevice(t, app, now.AddDate(0, 0, 1))
		change(d)
		return d
	}
	development, appStore := uint32(3), uint32(4)
	for what, c := range map[string]struct {
		device *attesttest.Device
		want   error
	}{
		"attestation":             {device(func(*attesttest.Device) {}), nil},
		"App Store on iOS 27":     {device(func(d *attesttest.Device) { d.Category = &appStore }), nil},
		"other app":               {device(func(d *attesttest.Device) { d.App = "ABCDE12345.com.example.b" }), apple.WrongApp},
		"used key":                {device(func(d *attesttest.Device) { d.Counter = 1 }), apple.WrongCounter},
		"development":             {device(func(d *attesttest.Device) { d.Development = true }), apple.WrongEnvironment},
		"not distributed":         {device(func(d *attesttest.Device) { d.Category = &development }), apple.WrongCategory},
		"expired certificate":     {device(func(d *attesttest.Device) { d.Expires = now.Add(-time.Second) }), apple.ExpiredChain},
		"certificate not yet due": {device(func(d *attesttest.Device) { d.Expires = now.AddDate(0, 0, 4) }), apple.ExpiredChain},
	} {
		_, err := apple.Verify(c.device.Attest(t, ca, challenge), c.device.KeyID(t), hashOf(challenge), s, now)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", what, err, c.want)
		}
	}
	d, other := device(func(*attesttest.Device) {}), device(func(*attesttest.Device) {})
	object := d.Attest(t, ca, challenge)
	want(t, "other challenge", apple.WrongChallenge, verifyErr(apple.Verify(object, d.KeyID(t), hashOf("b"), s, now)))
	want(t, "other key", apple.WrongKey, verifyErr(apple.Verify(object, other.KeyID(t), hashOf(challenge), s, now)))
	foreign := apple.Settings{Apps: s.Apps, Root: attesttest.NewApple(t, now).Root}
	want(t, "foreign chain", apple.ForeignChain, verifyErr(apple.Verify(object, d.KeyID(t), hashOf(challenge), foreign, now)))
	foreign.Root = nil
	want(t, "not Apple's", apple.ForeignChain, verifyErr(apple.Verify(object, d.KeyID(t), hashOf(challenge), foreign, now)))
	s.Development = true
	want(t, "production in development", apple.WrongEnvironment,
		verifyErr(apple.Verify(object, d.KeyID(t), hashOf(challenge), s, now)))
}

// The map of an attestation has three entries. One with a second authData, or without a length, is refused.
func TestVerify_RefusesAmbiguousCBOR(t *testing.T) {
	ca := attesttest.NewApple(t, now)
	s := apple.Settings{Apps: []string{app}, Root: ca.Root}
	d := attesttest.NewDevice(t, app, now.AddDate(0, 0, 1))
	object := d.Attest(t, ca, challenge)
	if object[0] != 0xa3 {
		t.Fatalf("the object begins with %x, want a map of three entries", object[0])
	}
	twice := append([]byte{0xa4}, object[1:]...)
	twice = append(twice, "\x68authData\x41x"...)
	indefinite := append(append([]byte{0xbf}, object[1:]...), 0xff)
	for what, c := range map[string]struct {
		object []byte
		want   apple.Reason
	}{
		"a key twice":       {twice, apple.DuplicateKey},
		"no length":         {indefinite, apple.IndefiniteLength},
		"bytes after it":    {append(bytes.Clone(object), 0), apple.Malformed},
		"an unknown field":  {append(append([]byte{0xa4}, object[1:]...), "\x61x\x01"...), apple.Malformed},
		"a part":            {object[:len(object)/2], apple.Malformed},
		"nothing":           {nil, apple.Malformed},
		"too large":         {make([]byte, apple.MaxObject+1), apple.Malformed},
		"a field's name":    {bytes.Replace(object, []byte("authData"), []byte("AUTHDATA"), 1), apple.Malformed},
		"the format's name": {bytes.Replace(object, []byte("apple-app"), []byte("apple-web"), 1), apple.Malformed},
	} {
		want(t, what, c.want, verifyErr(apple.Verify(c.object, d.KeyID(t), hashOf(challenge), s, now)))
	}
}

func TestAssert_RefusesWithReason(t *testing.T) {
	ca := attesttest.NewApple(t, now)
	s := apple.Settings{Apps: []string{app, "ABCDE12345.com.example.b"}, Root: ca.Root}
	d := attesttest.NewDevice(t, app, now.AddDate(0, 0, 1))
	key, err := apple.Verify(d.Attest(t, ca, challenge), d.KeyID(t), hashOf(challenge), s, now)
	if err != nil {
		t.Fatal(err)
	}
	assert := func(object []byte, challenge string, last uint32) error {
		_, err := apple.Assert(object, hashOf(challenge), key, last, s)
		return err
	}
	object := d.Assert(t, challenge)
	if n, err := apple.Assert(object, hashOf(challenge), key, 0, s); n != 1 || err != nil {
		t.Fatalf("got counter %d (error %v), want 1", n, err)
	}
	want(t, "other challenge", apple.WrongSignature, assert(object, "b", 0))
	want(t, "equal counter", apple.WrongCounter, assert(object, challenge, 1))
	want(t, "lower counter", apple.WrongCounter, assert(object, challenge, 2))
	want(t, "other device", apple.WrongSignature,
		assert(attesttest.NewDevice(t, app, now).Assert(t, challenge), challenge, 0))
	want(t, "bytes after it", apple.Malformed, assert(append(bytes.Clone(object), 0), challenge, 0))
	twice := append(append([]byte{object[0] + 1}, object[1:]...), "\x69signature\x41x"...)
	want(t, "a key twice", apple.DuplicateKey, assert(twice, challenge, 0))
	d.App = s.Apps[1]
	want(t, "the key in another app", apple.WrongApp, assert(d.Assert(t, challenge), challenge, 0))
	category := uint32(3)
	d.App, d.Category = app, &category
	want(t, "not distributed", apple.WrongCategory, assert(d.Assert(t, challenge), challenge, 0))
	s.Development = true
	if err := assert(d.Assert(t, challenge), challenge, 0); err != nil {
		t.Errorf("not distributed, in development: got %v, want success", err)
	}
}

// The assertions were made by testdata/assertion.py, which shares no code with this repository.
func TestAssert_AcceptsIndependentVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/assertion.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		App, Challenge  string
		Public, Without []byte
		With            []byte
		Counter         uint32
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	key := apple.Key{Public: v.Public, App: v.App}
	for _, object := range [][]byte{v.Without, v.With} {
		n, err := apple.Assert(object, hashOf(v.Challenge), key, v.Counter-1, apple.Settings{Apps: []string{v.App}})
		if n != v.Counter || err != nil {
			t.Errorf("got counter %d (error %v), want %d", n, err, v.Counter)
		}
	}
}

func FuzzVerify(f *testing.F) {
	ca := attesttest.NewApple(f, now)
	d := attesttest.NewDevice(f, app, now.AddDate(0, 0, 1))
	id, object := d.KeyID(f), d.Attest(f, ca, challenge)
	f.Add(object)
	f.Add(d.Assert(f, challenge))
	s := apple.Settings{Apps: []string{app}, Root: ca.Root}
	f.Fuzz(func(t *testing.T, data []byte) {
		var reason apple.Reason
		_, err := apple.Verify(data, id, hashOf(challenge), s, now)
		if err == nil && len(data) != len(object) || err != nil && !errors.As(err, &reason) {
			t.Errorf("got %v, want a reason", err)
		}
		_, err = apple.Assert(data, hashOf(challenge), apple.Key{Public: id, App: app}, 0, s)
		if !errors.As(err, &reason) {
			t.Errorf("assertion: got %v, want a reason", err)
		}
	})
}
