package credentials

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const rewrapBatch = 100

// DamagedError lists credentials that a rotation could not decrypt and left unchanged.
type DamagedError struct{ Credentials []Damaged }

// Damaged identifies a damaged credential and the key that it was encrypted with. Provider is the start of the user's
// hash after "memory of user " for what an app remembers about a user.
type Damaged struct{ AccountID, Project, Provider, KeyID string }

// Error returns a message with the number of damaged credentials, and the keys that must stay in the key file because
// of them.
func (e *DamagedError) Error() string {
	var keys []string
	for _, c := range e.Credentials {
		if !slices.Contains(keys, c.KeyID) {
			keys = append(keys, c.KeyID)
		}
	}
	noun := "credentials"
	if len(e.Credentials) == 1 {
		noun = "credential"
	}
	return fmt.Sprintf("%d %s could not be decrypted and stayed unchanged; until they are set again or removed, "+
		"these keys must stay in the key file: %s",
		len(e.Credentials), noun, strings.Join(keys, ", "))
}

// Rewrap encrypts every data key with the current key; the values stay the same. It includes the memories of users,
// which count as credentials. It returns the number of rewrapped credentials, even with an error. After a failure,
// another run continues where this one stopped. It leaves credentials that cannot be decrypted unchanged and reports
// them in a *DamagedError. It reports data keys whose key is not in the file in a *MissingKeyError. The returned error
// can wrap both.
func (s *Service) Rewrap(ctx context.Context) (int, error) {
	if !s.Configured() {
		return 0, ErrNotConfigured
	}
	done := 0
	var damaged []Damaged
	for _, old := range s.o.Keys.IDs()[1:] {
		for _, v := range vaults {
			n, bad, err := s.rewrapAll(ctx, v, old)
			done, damaged = done+n, append(damaged, bad...)
			if err != nil {
				return done, err
			}
		}
	}
	var result error
	if len(damaged) > 0 {
		result = &DamagedError{damaged}
	}
	counts, err := s.o.Store.CredentialKeys(ctx)
	if err != nil {
		return done, fmt.Errorf("count credentials: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		if _, known := s.o.Keys.find(id); !known {
			return done, errors.Join(result, &MissingKeyError{KeyID: id, Credentials: counts[id]})
		}
	}
	return done, result
}

// rewrapAll rewraps the data keys encrypted with one old key. It returns the number of rewrapped keys, and the
// credentials that it could not decrypt.
func (s *Service) rewrapAll(ctx context.Context, v vault, old string) (int, []Damaged, error) {
	done := 0
	var damaged []Damaged
	var last Stored
	for {
		batch, err := s.o.Store.under(ctx, v, old, last, rewrapBatch)
		if err != nil {
			return done, damaged, fmt.Errorf("read credentials: %w", err)
		}
		if len(batch) == 0 {
			return done, damaged, nil
		}
		for _, c := range batch {
			last = c
			moved, err := s.rewrapOne(ctx, v, c)
			if errors.Is(err, errDamaged) {
				damaged = append(damaged, Damaged{c.AccountID, c.Project, v.label(c.Provider), c.KeyID})
				continue
			}
			if err != nil {
				return done, damaged, err
			}
			if moved {
				done++
			}
		}
	}
}

func (s *Service) rewrapOne(ctx context.Context, v vault, c Stored) (bool, error) {
	e, err := s.o.Keys.rewrap(owner{v.kind, c.AccountID, c.SealedFor, c.Provider},
		envelope{c.Sealed, c.Wrapped, c.KeyID})
	if err != nil {
		return false, fmt.Errorf("rewrap %s of project %s, account %s: %w", v.label(c.Provider), c.Project, c.AccountID,
			err)
	}
	before := c.Wrapped
	c.Wrapped, c.KeyID = e.wrapped, e.keyID
	moved, err := s.o.Store.rewrap(ctx, v, c, before)
	if err != nil {
		return false, fmt.Errorf("save rewrapped key: %w", err)
	}
	return moved, nil
}

// Removable lists the IDs of older keys that no credential uses. Their lines can be removed from the key file.
func (s *Service) Removable(ctx context.Context) ([]string, error) {
	counts, err := s.o.Store.CredentialKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("count credentials: %w", err)
	}
	var ids []string
	for i, id := range s.o.Keys.IDs() {
		if i > 0 && counts[id] == 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
