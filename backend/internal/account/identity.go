package account

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/mail"
)

// SignInWith returns the account that an identity signs in to. It does not match a new identity by e-mail address to an
// account that has another way to sign in. Otherwise any provider could open any account by reporting its address, and
// unlinking would have no effect. The owner can link the identity in the settings instead. SignInWith returns
// ErrUnverifiedEmail, ErrUnverifiedAccount, ErrEmailTaken, ErrSuspended, or ErrNeedsConsent if no account exists yet.
func (s *Service) SignInWith(ctx context.Context, id Identity) (Account, error) {
	a, err := s.store.AccountByIdentity(ctx, id.Provider, id.Subject, s.now())
	if err == nil {
		return active(a)
	}
	if !errors.Is(err, ErrNotFound) {
		return Account{}, err
	}
	email, err := verifiedEmail(id)
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
	return Account{}, ErrEmailTaken
}

// SignUpWith creates an account for a user who accepted the privacy policy and whose address the provider has verified.
// It returns ErrUnverifiedEmail, ErrEmailTaken or ErrIdentityTaken.
func (s *Service) SignUpWith(ctx context.Context, id Identity) (Account, error) {
	email, err := verifiedEmail(id)
	if err != nil {
		return Account{}, err
	}
	now := s.now()
	a := Account{ID: uuid.NewString(), Email: email, Active: true, PrivacyAccepted: now, CreatedAt: now, VerifiedAt: now}
	linked := LinkedIdentity{Provider: id.Provider, Subject: id.Subject, Email: email, LinkedAt: now, UsedAt: now}
	if err := s.store.InsertAccountWith(ctx, a, linked); err != nil {
		return Account{}, err
	}
	s.log.InfoContext(ctx, "account created", "account", a.ID, "provider", id.Provider)
	return a, nil
}

// Identities lists the provider identities that can sign in to the account.
func (s *Service) Identities(ctx context.Context, accountID string) ([]LinkedIdentity, error) {
	return s.store.Identities(ctx, accountID)
}

// LinkIdentity lets an identity sign in to the account and mails a notice. The identity's address may differ from the
// account's. It returns ErrIdentityTaken if the identity is linked to another account.
func (s *Service) LinkIdentity(ctx context.Context, accountID string, id Identity, by audit.Actor) error {
	if id.Provider == "" || id.Subject == "" {
		return ErrNotFound
	}
	now := s.now()
	inserted, err := s.store.InsertIdentity(ctx, LinkedIdentity{
		Provider: id.Provider, Subject: id.Subject, Email: clip(id.Email, 254), LinkedAt: now, UsedAt: now,
	}, s.entry(accountID, by, "account.identity_linked", "signs in with %s as well", id.Provider))
	if err == nil && inserted {
		s.sendNotice(ctx, accountID, func(a Account) mail.Message { return identityLinkedMail(a, id.Provider) })
	}
	return err
}

// Unlink removes an identity from the account and ends the browser sessions that its provider opened, except the one
// with keepSecret. It returns ErrNotFound, or ErrLastWayIn if no other way to sign in is left.
func (s *Service) Unlink(ctx context.Context, accountID, provider, subject, keepSecret string, by audit.Actor) error {
	err := s.store.DeleteIdentity(ctx, provider, subject, s.keepHash(keepSecret),
		s.entry(accountID, by, "account.identity_unlinked", "no longer signs in with %s", clip(provider, 40)))
	if err == nil {
		s.ended(accountID)
	}
	return err
}

func verifiedEmail(id Identity) (string, error) {
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
