package projects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

// Limits on a project's keys.
const (
	MaxKeys    = 50  // live keys per project
	MaxKeyName = 100 // characters
	// RevokedFor is how long revoked keys are kept and listed. RevokedKept is the number kept per project; the oldest
	// are deleted first.
	RevokedFor  = 90 * 24 * time.Hour
	RevokedKept = 100
	hintChars   = 4
	prefixLen   = len(credential.ProjectKey) + 4
	// usedEvery is the minimum time between two recorded uses of a key.
	usedEvery = 5 * time.Minute
)

// Errors that callers check for.
var (
	// ErrTooManyKeys is returned if the project already has MaxKeys live keys.
	ErrTooManyKeys = errors.New("the project has reached its limit of keys")
	// ErrNoKey is returned if the project has no live key with this ID.
	ErrNoKey = errors.New("the project has no such key")
	// ErrUnknownKey is returned for a key that was never issued, is revoked or belongs to a suspended account. Callers
	// cannot tell these cases apart.
	ErrUnknownKey = errors.New("the project key is unknown or revoked")
)

// Key is a new project key. Secret is shown once and never stored.
type Key struct {
	ID     string
	Secret string
	// Hint is the end of Secret and Prefix its beginning. Both are shown to users.
	Hint, Prefix string
	CreatedAt    time.Time
}

// KeyInfo is a key without its secret. Times of events that have not happened are zero.
type KeyInfo struct {
	ID, Name, Hint, Prefix           string
	CreatedAt, LastUsedAt, RevokedAt time.Time
	By                               string // name of the creator; empty if unknown
}

// KeyOwner identifies the account and project of a key.
type KeyOwner struct{ AccountID, Project, KeyID string }

// StoredKey is a key as stored.
type StoredKey struct {
	ID, Hash           string
	AccountID, Project string
	Name, Hint, Prefix string
	CreatedAt          time.Time
	By                 audit.Actor
}

// MintKey creates a key for one of the account's apps; name describes its purpose. It returns an *InvalidError,
// ErrTooManyKeys or ErrTooManyProjects on failure.
func (s *Service) MintKey(ctx context.Context, accountID, project, name string, by audit.Actor) (Key, error) {
	if err := CheckID(project); err != nil {
		return Key{}, &InvalidError{err.Error()}
	}
	name = strings.TrimSpace(name)
	if n := utf8.RuneCountInString(name); n == 0 || n > MaxKeyName || strings.ContainsFunc(name, unprintable) {
		return Key{}, &InvalidError{fmt.Sprintf("name must be 1 to %d printable characters: what the key is for", MaxKeyName)}
	}
	k, stored := s.newKey(accountID, project, by)
	stored.Name = name
	e := audit.New(k.CreatedAt, accountID, by, "key.minted", project, "key "+name+" ending in "+k.Hint)
	if err := s.Store.AddProjectKey(ctx, stored, MaxKeys, e); err != nil {
		return Key{}, fmt.Errorf("save project key: %w", err)
	}
	return k, nil
}

func (s *Service) newKey(accountID, project string, by audit.Actor) (Key, StoredKey) {
	spk := secret.New(credential.ProjectKey)
	k := Key{ID: uuid.NewString(), Secret: spk, Hint: spk[len(spk)-hintChars:], Prefix: spk[:prefixLen],
		CreatedAt: s.now()}
	return k, StoredKey{ID: k.ID, Hash: s.hash(spk), AccountID: accountID, Project: project, Hint: k.Hint,
		Prefix:    k.Prefix,
		CreatedAt: k.CreatedAt, By: by}
}

// Keys lists the live keys of a project, then the revoked ones, each newest first, or returns ErrNotFound.
func (s *Service) Keys(ctx context.Context, accountID, id string) ([]KeyInfo, error) {
	id, err := s.Resolve(ctx, accountID, id)
	if err != nil {
		return nil, err
	}
	keys, err := s.Store.ProjectKeys(ctx, accountID, id)
	if err != nil {
		return nil, fmt.Errorf("list project keys: %w", err)
	}
	return keys, nil
}

// key returns the key with this ID, or ErrNoKey.
func (s *Service) key(ctx context.Context, accountID, project, keyID string) (KeyInfo, error) {
	keys, err := s.Store.ProjectKeys(ctx, accountID, project)
	if err != nil {
		return KeyInfo{}, fmt.Errorf("read project key: %w", err)
	}
	for _, k := range keys {
		if k.ID == keyID {
			return k, nil
		}
	}
	return KeyInfo{}, ErrNoKey
}

// RotateKey creates a key with the same name and revokes the old key in one step. It returns ErrNotFound or ErrNoKey on
// failure.
func (s *Service) RotateKey(ctx context.Context, accountID, id, keyID string, by audit.Actor) (Key, error) {
	id, err := s.Resolve(ctx, accountID, id)
	if err != nil {
		return Key{}, err
	}
	was, err := s.key(ctx, accountID, id, keyID)
	if err != nil {
		return Key{}, err
	}
	k, stored := s.newKey(accountID, id, by)
	stored.Name = was.Name
	e := audit.New(k.CreatedAt, accountID, by, "key.rotated", id, fmt.Sprintf("key %s ending in %s -> %s", was.Name,
		was.Hint, k.Hint))
	if err := s.Store.RotateProjectKey(ctx, keyID, stored, e); err != nil {
		return Key{}, fmt.Errorf("rotate project key: %w", err)
	}
	return k, nil
}

// RevokeKey revokes a key with immediate effect. It returns ErrNotFound or ErrNoKey on failure. Revoking a revoked key
// succeeds.
func (s *Service) RevokeKey(ctx context.Context, accountID, id, keyID string, by audit.Actor) error {
	id, err := s.Resolve(ctx, accountID, id)
	if err != nil {
		return err
	}
	was, err := s.key(ctx, accountID, id, keyID)
	if err != nil {
		return err
	}
	e := audit.New(s.now(), accountID, by, "key.revoked", id, "key "+was.Name+" ending in "+was.Hint)
	if err := s.Store.RevokeProjectKey(ctx, keyID, e); err != nil {
		return fmt.Errorf("revoke project key: %w", err)
	}
	return nil
}

// Authenticate returns the owner of a key, or ErrUnknownKey.
func (s *Service) Authenticate(ctx context.Context, key string) (KeyOwner, error) {
	if !secret.Valid(credential.ProjectKey, key) {
		return KeyOwner{}, ErrUnknownKey
	}
	owner, used, err := s.Store.KeyByHash(ctx, s.hash(key))
	if err != nil {
		return KeyOwner{}, err
	}
	now := s.now()
	if since := now.Add(-usedEvery); !used.After(since) {
		if err := s.Store.MarkKeyUsed(ctx, owner.KeyID, now, since); err != nil {
			return KeyOwner{}, fmt.Errorf("record use of a project key: %w", err)
		}
	}
	return owner, nil
}

func (s *Service) hash(key string) string { return s.Hasher.Hash("project key", key) }
