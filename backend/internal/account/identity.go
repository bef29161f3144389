package account

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/mail"
)

// SignInWith gives the account that an identity signs in to. An identity that is new here is linked to the account with
// its e-mail address, when both sides have proved that address. ErrUnverifiedEmail, ErrUnverifiedAccount,
// ErrNeedsConsent when there is no account yet, ErrSuspended.
func (s *Service) SignInWith(ctx context.Context, id Identity) (Account, error) {
	a, err := s.store.AccountByIdentity(ctx, id.Provider, id.Subject, s.now())
	if err == nil {
		return active(a)
	}
	if !errors.Is(err, ErrNotFound) {
		return Account{}, err
	}
	email, err := vouched(id)
	if err != nil {
		return Account{}, err
	}
	a, err = s.store.AccountByEmail(ctx, email)
	switch {
	case errors.Is(err, ErrBadCredentials):
		return Account{}, ErrNeedsConsent
	case err != nil:
		return Account{}, err
	case !a.Active:
		return Account{}, ErrSuspended
	case !a.Verified():
		return Account{}, ErrUnverifiedAccount
	}
	return a, s.LinkIdentity(ctx, a.ID, id, audit.Person())
}

// SignUpWith makes the account of a person who accepted the privacy policy and whose address the provider vouches for:
// ErrUnverifiedEmail, ErrEmailTaken, ErrIdentityTaken.
func (s *Service) SignUpWith(ctx context.Context, id Identity) (Account, error) {
	email, err := vouched(id)
	if err != nil {
		return Account{}, err
	}
	now := s.now()
	a := Account{ID: uuid.NewString(), Email: email, Active: true, PrivacyAccepted: now, CreatedAt: now, VerifiedAt: now}
	if err := s.store.InsertAccountWith(ctx, a, LinkedIdentity{Provider: id.Provider, Subject: id.Subject, Email: email, LinkedAt: now, UsedAt: now}); err != nil {
		return Account{}, err
	}
	s.log.InfoContext(ctx, "account made", "account", a.ID, "provider", id.Provider)
	return a, nil
}

// Identities lists what signs in to the account besides password and passkeys.
func (s *Service) Identities(ctx context.Context, accountID string) ([]LinkedIdentity, error) {
	return s.store.Identities(ctx, accountID)
}

// LinkIdentity lets an identity sign in to the account and mails its person a notice; its address need not be the
// account's. ErrIdentityTaken.
func (s *Service) LinkIdentity(ctx context.Context, accountID string, id Identity, by audit.Actor) error {
	if id.Provider == "" || id.Subject == "" {
		return ErrNotFound
	}
	now := s.now()
	linked, err := s.store.InsertIdentity(ctx, LinkedIdentity{Provider: id.Provider, Subject: id.Subject, Email: clip(id.Email, 254), LinkedAt: now, UsedAt: now},
		s.entry(accountID, by, "account.identity_linked", "signs in with %s as well", id.Provider))
	if err == nil && linked {
		s.tell(ctx, accountID, func(a Account) mail.Message { return identityLinkedMail(a, id.Provider) })
	}
	return err
}

// Unlink takes an identity off the account: ErrNotFound, ErrLastWayIn.
func (s *Service) Unlink(ctx context.Context, accountID, provider, subject string, by audit.Actor) error {
	return s.store.DeleteIdentity(ctx, provider, subject,
		s.entry(accountID, by, "account.identity_unlinked", "no longer signs in with %s", clip(provider, 40)))
}

func vouched(id Identity) (string, error) {
	if !id.EmailVerified || id.Provider == "" || id.Subject == "" {
		return "", ErrUnverifiedEmail
	}
	email, err := normalizeEmail(id.Email)
	if err != nil {
		return "", ErrUnverifiedEmail
	}
	return email, nil
}

func active(a Account) (Account, error) {
	if !a.Active {
		return Account{}, ErrSuspended
	}
	return a, nil
}
