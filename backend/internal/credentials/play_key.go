package credentials

import (
	"context"
	"errors"
	"fmt"

	"github.com/service-dev/service/backend/internal/audit"
)

// playProvider is the provider name under which the keys of Play Integrity are stored. No catalogue contains it.
const playProvider = "attest/google"

// playName is the name of these keys in the audit log.
const playName = "Play Integrity"

// SetPlayKeys stores the keys for a project's tokens of Google's Play Integrity API. The caller must check value. It
// returns ErrNotConfigured if this backend has no encryption key.
func (s *Service) SetPlayKeys(ctx context.Context, account, project, value string, by audit.Actor) error {
	if !s.Configured() {
		return ErrNotConfigured
	}
	return s.put(ctx, credentialOf(account, project, playProvider), value, "", playName, by)
}

// PlayKeys returns the value that SetPlayKeys stored. It returns ErrNotSet, or an ErrUnreadable, which lasts until the
// operator restores a key or the owner stores the value again.
func (s *Service) PlayKeys(ctx context.Context, account, project string) (string, error) {
	value, err := s.Open(ctx, account, project, playProvider)
	missing := (*MissingKeyError)(nil)
	if errors.Is(err, ErrNotConfigured) || errors.Is(err, errDamaged) || errors.As(err, &missing) {
		err = fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return value, err
}

// RemovePlayKeys deletes the keys of Play Integrity, or returns ErrNotSet.
func (s *Service) RemovePlayKeys(ctx context.Context, account, project string, by audit.Actor) error {
	return s.remove(ctx, account, project, playProvider, playName, by)
}
