package credentials

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

const rewrapBatch = 100

// Rewrap puts every data key under the current key; values are not touched. It tells how many it moved, also with an
// error, and goes on from there when it is run again. Data keys under a key that is not in the file are left as they
// are and end in a *MissingKeyError.
func (s *Service) Rewrap(ctx context.Context) (int, error) {
	if !s.Configured() {
		return 0, ErrNotConfigured
	}
	done := 0
	for _, old := range s.o.Keys.IDs()[1:] {
		n, err := s.rewrapAll(ctx, old)
		done += n
		if err != nil {
			return done, err
		}
	}
	counts, err := s.o.Store.CredentialKeys(ctx)
	if err != nil {
		return done, fmt.Errorf("counting credentials: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		if _, known := s.o.Keys.find(id); !known {
			return done, &MissingKeyError{KeyID: id, Credentials: counts[id]}
		}
	}
	return done, nil
}

// rewrapAll needs no bookmark: what was moved is no longer under the old key.
func (s *Service) rewrapAll(ctx context.Context, old string) (int, error) {
	done := 0
	for {
		batch, err := s.o.Store.CredentialsUnder(ctx, old, rewrapBatch)
		if err != nil {
			return done, fmt.Errorf("reading credentials: %w", err)
		}
		if len(batch) == 0 {
			return done, nil
		}
		for _, c := range batch {
			e, err := s.o.Keys.rewrap(owner{c.AccountID, c.SealedFor, c.Provider}, envelope{c.Sealed, c.Wrapped, c.KeyID})
			if err != nil {
				return done, fmt.Errorf("rewrapping the %s key of project %s, account %s: %w", c.Provider, c.Project, c.AccountID, err)
			}
			before := c.Wrapped
			c.Wrapped, c.KeyID = e.wrapped, e.keyID
			moved, err := s.o.Store.Rewrapped(ctx, c, before)
			if err != nil {
				return done, fmt.Errorf("storing a rewrapped key: %w", err)
			}
			if moved {
				done++
			}
		}
	}
}

// Removable lists the ids of older keys under which nothing lies any more: their lines can go from the key file.
func (s *Service) Removable(ctx context.Context) ([]string, error) {
	counts, err := s.o.Store.CredentialKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("counting credentials: %w", err)
	}
	var ids []string
	for i, id := range s.o.Keys.IDs() {
		if i > 0 && counts[id] == 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
