package attest

import (
	"context"

	"github.com/service-dev/service/backend/internal/projects"
)

var ErrChanged = errChanged

// Attest attests an install if the settings have a test key. It calls change between verifying and saving.
func (s *Service) Attest(ctx context.Context, who projects.KeyOwner, challenge string, change func()) (Token, error) {
	return s.try(ctx, who, challenge, PlatformDevelopment, func(a attempt) (Token, error) {
		if a.settings.TestKey == "" {
			return Token{}, &Refused{ReasonNotConfigured}
		}
		change()
		return s.issue(ctx, a, stored{keyHash: "hash", environment: Development}, s.Store.RenewInstall)
	})
}

// Issue stores an install that was verified with the settings.
func (s *Service) Issue(ctx context.Context, who projects.KeyOwner, verified Settings) (Token, error) {
	return s.issue(ctx, attempt{who: who, platform: PlatformDevelopment, now: s.now(), settings: verified},
		stored{keyHash: "hash", environment: Development}, s.Store.RenewInstall)
}
