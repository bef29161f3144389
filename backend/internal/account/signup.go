package account

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

// PendingSignUp is a stored sign-up whose mailed link has not been used yet.
type PendingSignUp struct {
	Hash, Email, PasswordHash string
	Next                      string // path of the page to open after the sign-up
	CreatedAt, ExpiresAt      time.Time
}

// mailedSignUp is a sign-up with a queued mail. Its link is secret.
type mailedSignUp struct{ email, link string }

// RequestSignUp queues a mail to a user who accepted the privacy policy. The mail contains a link that finishes the
// sign-up, or a notice that the address already has an account. Serve sends it, so the call takes the same time for
// every address. It returns ErrBadEmail or ErrBadPassword.
func (s *Service) RequestSignUp(ctx context.Context, email, password, next string) error {
	email, hashed, err := newCredentials(ctx, email, password)
	if err != nil {
		return err
	}
	token, now := secret.New(credential.Mail), s.now()
	err = s.store.InsertSignUp(ctx, PendingSignUp{
		Hash: s.signUpHash(token), Email: email, PasswordHash: hashed, Next: next, CreatedAt: now,
		ExpiresAt: now.Add(VerifyLife),
	}, now.Add(-mailHour), MaxMails)
	if errors.Is(err, ErrTooManyMails) {
		s.log.WarnContext(ctx, "dropped sign-up mail: too many e-mails to the address")
		return nil
	}
	if err != nil {
		return err
	}
	select {
	case s.signUps <- mailedSignUp{email, s.SiteURL + "/signup/confirm?token=" + token}:
	default:
		s.log.WarnContext(ctx, "dropped sign-up mail: queue is full")
	}
	return nil
}

// FinishSignUp creates the account of a mailed sign-up and returns the path of the page to open. It requires the
// chosen password, so that the reader of the mail does not get an account whose password a stranger knows. It
// returns ErrBadToken, ErrEmailTaken, ErrBadCredentials or a *TooManyGuessesError.
func (s *Service) FinishSignUp(ctx context.Context, token, password string) (Account, string, error) {
	if !secret.Valid(credential.Mail, token) {
		return Account{}, "", ErrBadToken
	}
	p, err := s.store.SignUpByToken(ctx, s.signUpHash(token), s.now())
	if err != nil {
		return Account{}, "", err
	}
	chosen := Account{PasswordHash: p.PasswordHash}
	if err := s.guess(ctx, s.ownAllowance(p.Hash), func() error { return chosen.check(ctx, password) }); err != nil {
		return Account{}, "", err
	}
	now := s.now()
	a := Account{
		ID: uuid.NewString(), Email: p.Email, PasswordHash: p.PasswordHash, Active: true,
		PrivacyAccepted: p.CreatedAt, CreatedAt: now, VerifiedAt: now,
	}
	if err := s.store.FinishSignUp(ctx, p.Hash, a); err != nil {
		return Account{}, "", err
	}
	s.log.InfoContext(ctx, "account created", "account", a.ID)
	return a, p.Next, nil
}

func (s *Service) signUpHash(token string) string { return s.hash.Hash("mailed sign-up", token) }

// mailSignUp mails the link that finishes the sign-up, or a notice that the address already has an account.
func (s *Service) mailSignUp(ctx context.Context, m mailedSignUp) {
	a, err := s.store.AccountByEmail(ctx, m.email)
	switch {
	case errors.Is(err, ErrBadCredentials):
		err = s.send(ctx, signUpMail(m.email, m.link))
	case err == nil:
		err = s.send(ctx, haveAccountMail(a, s.SiteURL+"/signin"))
	}
	if err != nil {
		s.log.WarnContext(ctx, "failed to send sign-up mail", "err", err)
	}
}
