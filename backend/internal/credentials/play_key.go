package credentials

import (
	"context"

	"github.com/service-dev/service/backend/internal/audit"
)

// playProvider is the provider name under which the keys of Play Integrity are stored. No catalogue contains it.
const playProvider = "attest/google"

// SetPlayKeys stores the keys for a project's tokens of Google's Play Integrity API. The caller must check value. It
// returns ErrNotConfigured if this backend has no encryption key.
func (s *Service) SetPlayKeys(ctx context.Context, account, project, value string, by audit.Actor) error {
	if !s.Configured() {
		return ErrNotConfigured
	}
	return s.put(ctx, credentialOf(account, project, playProvider), value, "", "Play Integrity", by)
}

// PlayKeys returns the value that SetPlayKeys stored, or ErrNotSet.
func (s *Service) PlayKeys(ctx context.Context, account, project string) (string, error) {
	return s.Open(ctx, account, project, playProvider)
}

// RemovePlayKeys deletes the keys of Play Integrity, or returns ErrNotSet.
func (s *Service) RemovePlayKeys(ctx context.Context, account, project string, by audit.Actor) error {
	return s.Remove(ctx, account, project, playProvider, by)
}
