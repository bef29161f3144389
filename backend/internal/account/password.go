package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// Parameters of argon2id, the first choice recommended by OWASP: 19 MiB, two passes, one lane.
const (
	argonMemory = 19 * 1024
	argonTime   = 2
	argonLanes  = 1
	argonKey    = 32
	argonSalt   = 16
)

// hashing limits concurrent password hashing to two, because each hash takes 19 MiB and a core.
var hashing = make(chan struct{}, 2)

// decoyHash makes a sign-in with an unknown address take as long as one with a known address. No password is known to
// match it.
const decoyHash = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

func hashPassword(ctx context.Context, password string) (string, error) {
	salt := make([]byte, argonSalt)
	rand.Read(salt)
	key, err := derive(ctx, password, salt)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonLanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key)), nil
}

func checkPassword(ctx context.Context, stored, password string) (bool, error) {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false, fmt.Errorf("parse password hash: unknown format")
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false, fmt.Errorf("parse password hash: %w", err)
	}
	want, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil {
		return false, fmt.Errorf("parse password hash: %w", err)
	}
	got, err := derive(ctx, password, salt)
	return err == nil && subtle.ConstantTimeCompare(got, want) == 1, err
}

func derive(ctx context.Context, password string, salt []byte) ([]byte, error) {
	select {
	case hashing <- struct{}{}:
		defer func() { <-hashing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonLanes, argonKey), nil
}
