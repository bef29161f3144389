package credentials

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// format is the version of the envelope. The encryption authenticates it too.
const format = "1"

// errDamaged is returned for an envelope that cannot be decrypted because it was changed or moved to another owner.
var errDamaged = errors.New("the stored credential cannot be decrypted: it was changed or moved")

// MissingKeyError is returned for credentials encrypted with a key that is not in the key file.
type MissingKeyError struct {
	KeyID       string
	Credentials int // number of such credentials; 0 if a single one was requested
}

// Error returns a message that includes the ID of the missing key.
func (e *MissingKeyError) Error() string {
	if e.Credentials == 0 {
		return fmt.Sprintf("the credential is encrypted with key %s, which is not in the key file", e.KeyID)
	}
	return fmt.Sprintf("%d credentials need key %s, which is missing from the key file: put it back",
		e.Credentials, e.KeyID)
}

// owner identifies the owner of an envelope. The envelope cannot be decrypted for any other owner. name is the provider
// of a credential.
type owner struct{ kind, account, project, name string }

func credentialOf(account, project, provider string) owner {
	return owner{kindCredential, account, project, provider}
}

func (o owner) bind(purpose string) []byte {
	return []byte(strings.Join([]string{o.kind, purpose, format, o.account, o.project, o.name}, "\x00"))
}

// envelope contains an encrypted value and its data key, which is encrypted with the wrapping key keyID.
type envelope struct{ sealed, wrapped, keyID string }

// seal encrypts a value with a new data key, and that key with the current wrapping key.
func (k Keys) seal(o owner, value string) (envelope, error) {
	if k.Empty() {
		return envelope{}, ErrNotConfigured
	}
	var data [keyBytes]byte
	rand.Read(data[:])
	sealed, err := encrypt(data[:], []byte(value), o.bind("value"))
	if err != nil {
		return envelope{}, err
	}
	return k.list[0].wrap(o, data[:], sealed)
}

// open decrypts the value. The wrapping key of its data key must be in k.
func (k Keys) open(o owner, e envelope) (string, error) {
	data, err := k.unwrap(o, e)
	if err != nil {
		return "", err
	}
	value, err := decrypt(data, e.sealed, o.bind("value"))
	return string(value), err
}

// rewrap encrypts the data key with the current wrapping key. The sealed value does not change.
func (k Keys) rewrap(o owner, e envelope) (envelope, error) {
	data, err := k.unwrap(o, e)
	if err != nil {
		return envelope{}, err
	}
	return k.list[0].wrap(o, data, e.sealed)
}

func (k Keys) unwrap(o owner, e envelope) ([]byte, error) {
	if k.Empty() {
		return nil, ErrNotConfigured
	}
	key, ok := k.find(e.keyID)
	if !ok {
		return nil, &MissingKeyError{KeyID: e.keyID}
	}
	return decrypt(key.key[:], e.wrapped, o.bind("key "+key.id))
}

func (k wrappingKey) wrap(o owner, data []byte, sealed string) (envelope, error) {
	wrapped, err := encrypt(k.key[:], data, o.bind("key "+k.id))
	return envelope{sealed: sealed, wrapped: wrapped, keyID: k.id}, err
}

// encrypt encrypts with AES-256-GCM and returns the format version, a dot, and the random nonce and ciphertext in
// base64.
func encrypt(key, plain, bound []byte) (string, error) {
	gcm, err := newGCM(key)
	if err != nil {
		return "", err
	}
	return format + "." + base64.RawStdEncoding.EncodeToString(gcm.Seal(nil, nil, plain, bound)), nil
}

func decrypt(key []byte, text string, bound []byte) ([]byte, error) {
	gcm, err := newGCM(key)
	if err != nil {
		return nil, err
	}
	body, ok := strings.CutPrefix(text, format+".")
	raw, err := base64.RawStdEncoding.DecodeString(body)
	if !ok || err != nil {
		return nil, errDamaged
	}
	plain, err := gcm.Open(nil, nil, raw, bound)
	if err != nil {
		return nil, errDamaged
	}
	return plain, nil
}

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("create cipher: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}
