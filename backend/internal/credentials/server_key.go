package credentials

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/service-dev/service/backend/internal/audit"
)

// ServerPrefix begins the provider name under which a local server's key is stored. No catalogue contains such a
// provider.
const ServerPrefix = "local/"

const maxServerKey = 1000

// CheckServerKey returns an error if SetServerKey would refuse the key: ErrNotConfigured or an *InvalidError, which
// never contains the value.
func (s *Service) CheckServerKey(value string) error {
	if !s.Configured() {
		return ErrNotConfigured
	}
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if value == "" || len(value) > maxServerKey || strings.ContainsFunc(value, odd) {
		return &InvalidError{Message: fmt.Sprintf("A key must be 1 to %d ASCII characters without spaces.", maxServerKey)}
	}
	return nil
}

// SetServerKey stores the key of a local server that a project's owner added. It returns the same errors as
// CheckServerKey.
func (s *Service) SetServerKey(ctx context.Context, account, project, server, value string, by audit.Actor) error {
	value = strings.TrimSpace(value)
	if err := s.CheckServerKey(value); err != nil {
		return err
	}
	return s.put(ctx, credentialOf(account, project, ServerPrefix+server), value, "", "local server "+server, by)
}

// ServerKey returns the key of a local server, or "" if it has none.
func (s *Service) ServerKey(ctx context.Context, account, project, server string) (string, error) {
	value, err := s.Open(ctx, account, project, ServerPrefix+server)
	if errors.Is(err, ErrNotSet) {
		return "", nil
	}
	return value, err
}

// RemoveServerKey deletes the key of a local server, if it has one.
func (s *Service) RemoveServerKey(ctx context.Context, account, project, server string, by audit.Actor) error {
	if err := s.Remove(ctx, account, project, ServerPrefix+server, by); !errors.Is(err, ErrNotSet) {
		return err
	}
	return nil
}
