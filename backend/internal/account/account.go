// Package account is a person's account and the browser sessions it is signed in with. It knows no page, no cookie
// and no SQL.
package account

import (
	"context"
	"errors"
	"log/slog"
	"net/mail"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/secret"
)

// Errors that callers branch on.
var (
	ErrEmailTaken     = errors.New("e-mail address has an account")
	ErrBadEmail       = errors.New("not an e-mail address")
	ErrBadPassword    = errors.New("password must have 10 to 200 characters")
	ErrBadCredentials = errors.New("e-mail address or password is wrong")
	ErrNoSession      = errors.New("no such browser session")
	ErrSuspended      = errors.New("account is suspended")
)

// SessionLife is how long a browser stays signed in.
const SessionLife = 30 * 24 * time.Hour

// Account is a person's account. PasswordHash never leaves the backend.
type Account struct {
	ID              string
	Email           string
	PasswordHash    string
	Active          bool
	PrivacyAccepted time.Time
	CreatedAt       time.Time
}

// Store keeps accounts and browser sessions; sessions are known by the hash of their secret.
type Store interface {
	// InsertAccount answers ErrEmailTaken.
	InsertAccount(ctx context.Context, a Account) error
	// AccountByEmail answers ErrBadCredentials.
	AccountByEmail(ctx context.Context, email string) (Account, error)
	InsertWebSession(ctx context.Context, hash, accountID string, created, expires time.Time) error
	// AccountByWebSession answers ErrNoSession for an unknown or expired one.
	AccountByWebSession(ctx context.Context, hash string, now time.Time) (Account, error)
	DeleteWebSession(ctx context.Context, hash string) error
}

// Service signs people up and in.
type Service struct {
	store Store
	hash  secret.Hasher
	log   *slog.Logger
	now   func() time.Time
}

// NewService wires the service to its store. now may be nil.
func NewService(store Store, hash secret.Hasher, log *slog.Logger, now func() time.Time) *Service {
	if now == nil {
		now = time.Now
	}
	return &Service{store: store, hash: hash, log: log, now: now}
}

// SignUp creates the account of a person who accepted the privacy policy: ErrBadEmail, ErrBadPassword, ErrEmailTaken.
func (s *Service) SignUp(ctx context.Context, email, password string) (Account, error) {
	email, err := normalizeEmail(email)
	if err != nil {
		return Account{}, err
	}
	if n := len([]rune(password)); n < 10 || n > 200 {
		return Account{}, ErrBadPassword
	}
	hashed, err := hashPassword(ctx, password)
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

// SignIn checks a password: ErrBadCredentials for an unknown address and a wrong password alike, in about the same
// time; ErrSuspended.
func (s *Service) SignIn(ctx context.Context, email, password string) (Account, error) {
	email, err := normalizeEmail(email)
	if err != nil {
		return Account{}, ErrBadCredentials
	}
	a, err := s.store.AccountByEmail(ctx, email)
	if err != nil && !errors.Is(err, ErrBadCredentials) {
		return Account{}, err
	}
	stored := a.PasswordHash
	if stored == "" {
		stored = decoyHash
	}
	ok, checkErr := checkPassword(ctx, stored, password)
	switch {
	case checkErr != nil:
		return Account{}, checkErr
	case err != nil || !ok:
		return Account{}, ErrBadCredentials
	case !a.Active:
		return Account{}, ErrSuspended
	}
	return a, nil
}

// OpenSession signs a browser in and gives the secret for its cookie.
func (s *Service) OpenSession(ctx context.Context, accountID string) (string, error) {
	value := secret.New(secret.Browser)
	now := s.now()
	return value, s.store.InsertWebSession(ctx, s.hash.Hash("browser", value), accountID, now, now.Add(SessionLife))
}

// FindSession tells who is signed in: ErrNoSession otherwise, and for a suspended account.
func (s *Service) FindSession(ctx context.Context, value string) (Account, error) {
	if !secret.Valid(secret.Browser, value) {
		return Account{}, ErrNoSession
	}
	a, err := s.store.AccountByWebSession(ctx, s.hash.Hash("browser", value), s.now())
	if err == nil && !a.Active {
		return Account{}, ErrNoSession
	}
	return a, err
}

// CloseSession signs a browser out; an unknown one is no error.
func (s *Service) CloseSession(ctx context.Context, value string) error {
	return s.store.DeleteWebSession(ctx, s.hash.Hash("browser", value))
}

func normalizeEmail(s string) (string, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	if len(s) > 254 || strings.ContainsAny(s, " <>\"(),:;[]\\") {
		return "", ErrBadEmail
	}
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Address != s || !strings.Contains(s, "@") {
		return "", ErrBadEmail
	}
	return s, nil
}
