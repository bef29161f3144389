package projects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/service-dev/service/backend/internal/secret"
)

// Bounds of a project's keys.
const (
	MaxKeys    = 50
	MaxKeyName = 100 // characters
	hintChars  = 4
)

// ErrTooManyKeys refuses a key beyond MaxKeys.
var ErrTooManyKeys = errors.New("the project has as many keys as it can have")

// InvalidError is a request that can never work; Message is for people.
type InvalidError struct{ Message string }

// Error gives the message.
func (e *InvalidError) Error() string { return e.Message }

// Key is a new project key. Secret is told once and stored nowhere.
type Key struct {
	Secret string
	// Hint is the end of Secret, for people.
	Hint      string
	CreatedAt time.Time
}

// StoredKey is what is kept of a key.
type StoredKey struct {
	Hash      string
	AccountID string
	Project   string
	Name      string
	Hint      string
	CreatedAt time.Time
}

// Store keeps projects and the hashes of their keys. Every method is atomic.
type Store interface {
	// AddProjectKey stores a key, and its project when that is new. It returns ErrTooManyKeys when the project has limit
	// keys already, however many ask at once.
	AddProjectKey(ctx context.Context, k StoredKey, limit int) error
}

// Service is what people and agents do with their projects.
type Service struct {
	Store  Store
	Hasher secret.Hasher
	Now    func() time.Time
}

// MintKey makes one more key for an app of the account; name says what for. The error may be an *InvalidError or
// ErrTooManyKeys.
func (s *Service) MintKey(ctx context.Context, accountID, project, name string) (Key, error) {
	if err := CheckID(project); err != nil {
		return Key{}, &InvalidError{err.Error()}
	}
	name = strings.TrimSpace(name)
	if n := utf8.RuneCountInString(name); n == 0 || n > MaxKeyName || strings.ContainsFunc(name, unprintable) {
		return Key{}, &InvalidError{fmt.Sprintf("name is not 1 to %d printable characters: what the key is for", MaxKeyName)}
	}
	spk := secret.New(secret.ProjectKey)
	k := Key{Secret: spk, Hint: spk[len(spk)-hintChars:], CreatedAt: s.Now().UTC().Truncate(time.Millisecond)}
	err := s.Store.AddProjectKey(ctx, StoredKey{
		Hash: s.Hasher.Hash("project key", spk), AccountID: accountID, Project: project, Name: name, Hint: k.Hint, CreatedAt: k.CreatedAt,
	}, MaxKeys)
	if err != nil {
		return Key{}, fmt.Errorf("storing project key: %w", err)
	}
	return k, nil
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
