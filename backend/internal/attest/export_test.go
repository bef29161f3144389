package attest

import (
	"context"

	"github.com/service-dev/service/backend/internal/projects"
)

// Issue stores an install that was verified with the settings.
func (s *Service) Issue(ctx context.Context, who projects.KeyOwner, verified Settings) (Token, error) {
	return s.issue(ctx, attempt{who: who, platform: PlatformDevelopment, now: s.now(), settings: verified},
		stored{keyHash: "hash", environment: Development}, s.Store.RenewInstall)
}
