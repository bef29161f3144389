package account

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/secret"
)

// PendingSignUp is a sign-up that waits for its mailed link, as stored.
type PendingSignUp struct {
	Hash, Email, PasswordHash string
	Next                      string // path to go to afterwards
	CreatedAt, ExpiresAt      time.Time
}

// mailedSignUp is a sign-up that Serve mails about. The link is a secret.
type mailedSignUp struct{ email, link string }

// RequestSignUp has a link mailed that finishes the sign-up of a person who accepted the privacy policy; whoever has an
// account already is mailed that instead. The answer and the work are the same for every address, and Serve does the
// rest: ErrBadEmail, ErrBadPassword.
func (s *Service) RequestSignUp(ctx context.Context, email, password, next string) error {
	email, err := normalizeEmail(email)
	if err != nil {
		return err
	}
	hashed, err := newPassword(ctx, password)
	if err != nil {
		return err
	}
	token, now := secret.New(secret.Mail), s.now()
	err = s.store.InsertSignUp(ctx, PendingSignUp{Hash: s.signUpHash(token), Email: email, PasswordHash: hashed, Next: next,
		CreatedAt: now, ExpiresAt: now.Add(VerifyLife)}, now.Add(-mailHour), MaxMails)
	if errors.Is(err, ErrTooManyMails) {
		s.log.WarnContext(ctx, "a sign-up is not mailed: its address had enough within the hour")
		return nil
	}
	if err != nil {
		return err
	}
	select {
	case s.signUps <- mailedSignUp{email, s.SiteURL + "/signup/confirm?token=" + token}:
	default:
		s.log.WarnContext(ctx, "a sign-up is not mailed: too many wait")
	}
	return nil
}

// FinishSignUp makes the account of a mailed link's sign-up and returns the path to go to: ErrBadToken, ErrEmailTaken,
// *TooManyGuessesError. It asks for the password that was chosen, ErrBadCredentials: whoever reads the mail may be
// another than who signed up with the address, and must not get an account whose password somebody else knows.
func (s *Service) FinishSignUp(ctx context.Context, token, password string) (Account, string, error) {
	if !secret.Valid(secret.Mail, token) {
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
	a := Account{ID: uuid.NewString(), Email: p.Email, PasswordHash: p.PasswordHash, Active: true,
		PrivacyAccepted: p.CreatedAt, CreatedAt: now, VerifiedAt: now}
	if err := s.store.FinishSignUp(ctx, p.Hash, a); err != nil {
		return Account{}, "", err
	}
	s.log.InfoContext(ctx, "account made", "account", a.ID)
	return a, p.Next, nil
}

func (s *Service) signUpHash(token string) string { return s.hash.Hash("mailed sign-up", token) }

// mailSignUp tells the address how to finish, or that there is an account.
func (s *Service) mailSignUp(ctx context.Context, m mailedSignUp) {
	a, err := s.store.AccountByEmail(ctx, m.email)
	switch {
	case errors.Is(err, ErrBadCredentials):
		err = s.send(ctx, signUpMail(m.email, m.link))
	case err == nil:
		err = s.send(ctx, haveAccountMail(a, s.SiteURL+"/signin"))
	}
	if err != nil {
		s.log.WarnContext(ctx, "mailing a sign-up", "err", err)
	}
}
