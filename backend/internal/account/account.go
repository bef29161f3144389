// Package account is a person's account: how it is signed in to (password, passkey, other providers), the browsers that
// are signed in, the mailed links that prove an address or set a new password, what is handed out and what is deleted.
// It knows no page, no cookie and no SQL.
package account

import (
	"context"
	"errors"
	"log/slog"
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/secret"
)

// Service signs people up and in. Set Mail and SiteURL before use; without Mail nothing is sent.
type Service struct {
	// Mail sends the links.
	Mail Outbox
	// SiteURL is the address that mailed links lead to, without a slash at its end.
	SiteURL string
	// Ended is called after browsers or links of an account lost their say here, so that what they opened ends now and
	// not at its next check; it may be nil.
	Ended func(accountID string)

	store  Store
	hash   secret.Hasher
	log    *slog.Logger
	now    func() time.Time
	forgot chan string // addresses whose password was forgotten
	linked chan linked // links whose account's person is to be told
	// signUps are those that somebody is to be mailed about.
	signUps chan mailedSignUp
}

// NewService wires the service to its store. now may be nil.
func NewService(store Store, hash secret.Hasher, log *slog.Logger, now func() time.Time) *Service {
	if now == nil {
		now = time.Now
	}
	return &Service{store: store, hash: hash, log: log, now: now, forgot: make(chan string, maxForgot), linked: make(chan linked, maxLinked),
		signUps: make(chan mailedSignUp, maxForgot)}
}

// SignUp creates the account of a person who accepted the privacy policy, where no mail is sent: ErrBadEmail, ErrBadPassword, ErrEmailTaken.
func (s *Service) SignUp(ctx context.Context, email, password string) (Account, error) {
	email, err := normalizeEmail(email)
	if err != nil {
		return Account{}, err
	}
	hashed, err := newPassword(ctx, password)
	if err != nil {
		return Account{}, err
	}
	now := s.now()
	a := Account{ID: uuid.NewString(), Email: email, PasswordHash: hashed, Active: true, PrivacyAccepted: now, CreatedAt: now}
	if err := s.store.InsertAccount(ctx, a); err != nil {
		return Account{}, err
	}
	s.log.InfoContext(ctx, "account made", "account", a.ID)
	return a, nil
}

// SignIn checks a password: ErrBadCredentials for an unknown address, an account without a password and a wrong
// password alike, in about the same time; ErrSuspended; *TooManyGuessesError. browser names one that has signed in with
// this address before, and is empty for any other.
func (s *Service) SignIn(ctx context.Context, email, password, browser string) (Account, error) {
	email, err := normalizeEmail(email)
	if err != nil {
		return Account{}, ErrBadCredentials
	}
	a, err := s.byEmail(ctx, email)
	if err != nil && !errors.Is(err, ErrBadCredentials) {
		return Account{}, err
	}
	if err == nil {
		email = a.Email // one allowance for every way to write it
	}
	check := func() error { return a.check(ctx, password) }
	if err := s.guess(ctx, s.signInAllowance(email, browser), check); err != nil {
		return Account{}, err
	}
	if !a.Active {
		return Account{}, ErrSuspended
	}
	return a, nil
}

// check hashes in any case, so that the time tells nothing of the account.
func (a Account) check(ctx context.Context, password string) error {
	stored := a.PasswordHash
	if stored == "" {
		stored = decoyHash
	}
	ok, err := checkPassword(ctx, stored, password)
	if err != nil {
		return err
	}
	if !ok || a.PasswordHash == "" {
		return ErrBadCredentials
	}
	return nil
}

// ByID gives an active account: ErrNotFound, ErrSuspended.
func (s *Service) ByID(ctx context.Context, accountID string) (Account, error) {
	a, err := s.store.AccountByID(ctx, accountID)
	if err == nil && !a.Active {
		return Account{}, ErrSuspended
	}
	return a, err
}

func newPassword(ctx context.Context, password string) (string, error) {
	if n := utf8.RuneCountInString(password); n < 10 || n > 200 {
		return "", ErrBadPassword
	}
	return hashPassword(ctx, password)
}

// FoldEmail is an address without the case of its ASCII letters, which no mail server tells apart. Other letters stay: some
// turn into ASCII ones in lower case, and the addresses are of different people.
func FoldEmail(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, strings.TrimSpace(s))
}

// formerFold is an address as accounts were stored with it before: other letters in lower case too, but never as ASCII.
func formerFold(email string) string {
	return strings.Map(func(r rune) rune {
		if lower := unicode.ToLower(r); lower > unicode.MaxASCII {
			return lower
		}
		return r
	}, email)
}

// byEmail finds the account of an address that was typed, folded already, also by what it was stored with before. The
// caller must prove the account another way than by the address: ErrBadCredentials when there is none.
func (s *Service) byEmail(ctx context.Context, email string) (Account, error) {
	a, err := s.store.AccountByEmail(ctx, email)
	if former := formerFold(email); former != email && errors.Is(err, ErrBadCredentials) {
		return s.store.AccountByEmail(ctx, former)
	}
	return a, err
}

func normalizeEmail(s string) (string, error) {
	s = FoldEmail(s)
	if len(s) > 254 || strings.ContainsAny(s, " <>\"(),:;[]\\") {
		return "", ErrBadEmail
	}
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Address != s || !strings.Contains(s, "@") {
		return "", ErrBadEmail
	}
	return s, nil
}
