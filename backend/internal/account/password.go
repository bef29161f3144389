package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"

	"github.com/service-dev/service/backend/internal/limit"
)

// Parameters of argon2id, the first choice recommended by OWASP: 19 MiB, two passes, one lane.
const (
	argonMemory = 19 * 1024
	argonTime   = 2
	argonLanes  = 1
	argonKey    = 32
	argonSalt   = 16
)

// Few passwords are hashed concurrently, because each hash takes 19 MiB and a core. Users who have proved that they
// own the account do not wait for strangers, and strangers from one network get only a share of the remaining
// capacity.
var (
	strangers = limit.NewSlots(limit.Bounds{Running: 2, RunningEach: 1, Waiting: 64, WaitingEach: 16})
	known     = limit.NewSlots(limit.Bounds{Running: 1, RunningEach: 1, Waiting: 64, WaitingEach: 4})
)

// ErrBusy is returned if too many passwords are being checked. The password was not checked.
var ErrBusy = errors.New("too many passwords are being checked")

type (
	addressKey struct{}
	knownKey   struct{}
)

// WithAddress returns a context with the caller's network address. Callers from one network share part of the hashing
// capacity.
func WithAddress(ctx context.Context, ip string) context.Context {
	return context.WithValue(ctx, addressKey{}, ip)
}

// asKnown returns a context for hashing the password of a user who has proved that they own the account. who
// identifies the account.
func asKnown(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, knownKey{}, who)
}

// enterHashing waits until the caller may hash a password. It returns ErrBusy if too many callers are already waiting.
func enterHashing(ctx context.Context) (leave func(), err error) {
	if who, ok := ctx.Value(knownKey{}).(string); ok {
		leave, err = known.Enter(ctx, who)
	} else {
		ip, _ := ctx.Value(addressKey{}).(string)
		leave, err = strangers.Enter(ctx, limit.Network(ip))
	}
	if errors.Is(err, limit.ErrFull) {
		err = ErrBusy
	}
	return leave, err
}

// decoyHash is checked for unknown addresses, so that a sign-in takes as long as with a known address. It matches no
// known password.
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
	leave, err := enterHashing(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonLanes, argonKey), nil
}
