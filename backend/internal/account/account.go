// Package account manages user accounts: sign-in methods, browser sessions, mailed links, data export and account
// deletion. It contains no page or cookie code.
package account

import (
	"context"
	"errors"
	"log/slog"
	"net/mail"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/passwords"
)

// Service implements sign-up, sign-in and account management. Set Mail and SiteURL before use. If Mail is nil, no mail
// is sent.
type Service struct {
	// Mail queues account mail, such as verification links and notices.
	Mail Outbox
	// SiteURL is the base URL of mailed links, without a trailing slash.
	SiteURL string
	// Ended is called after this process ends browser sessions or links of an account, so that connections opened with
	// them close immediately instead of at their next check. It may be nil.
	Ended func(accountID string)
	// SignedIn is called after a browser session is opened for an account. Its error is only logged, and the sign-in
	// still succeeds. It may be nil.
	SignedIn func(ctx context.Context, accountID string) error

	store *Store
	audit *audit.Store
	hash  secret.Hasher
	log   *slog.Logger
	now   func() time.Time
	// These channels queue work for Serve: password resets, notices of new links, and sign-ups that need a mail.
	forgot  chan string
	linked  chan newLink
	signUps chan mailedSignUp
}

// Options configure a Service.
type Options struct {
	Store  *Store
	Hasher secret.Hasher
	Log    *slog.Logger
	Now    func() time.Time // defaults to time.Now
}

// New returns a service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{
		store: o.Store, audit: audit.NewStore(o.Store.DB), hash: o.Hasher, log: o.Log, now: o.Now, forgot: make(chan string,
			maxQueued),
		linked: make(chan newLink, maxQueued), signUps: make(chan mailedSignUp, maxQueued),
	}
}

// newCredentials returns the normalised address and the hash of the password.
func newCredentials(ctx context.Context, address, password string) (email, hashed string, err error) {
	if email, err = normalizeEmail(address); err == nil {
		hashed, err = newPassword(ctx, password)
	}
	return email, hashed, err
}

// SignUp creates an account for a user who accepted the privacy policy, on a server that sends no mail. It returns
// ErrBadEmail, ErrBadPassword or ErrEmailTaken.
func (s *Service) SignUp(ctx context.Context, email, password string) (Account, error) {
	email, hashed, err := newCredentials(ctx, email, password)
	if err != nil {
		return Account{}, err
	}
	now := s.now()
	a := Account{
		ID: uuid.NewString(), Email: email, PasswordHash: hashed, Active: true, PrivacyAccepted: now, CreatedAt: now,
	}
	if err := s.store.InsertAccount(ctx, a); err != nil {
		return Account{}, err
	}
	s.log.InfoContext(ctx, "account created", "account", a.ID)
	return a, nil
}

// SignIn checks a password. It returns ErrBadCredentials for an unknown address, for an account without a password and
// for a wrong password; all three take about the same time. It may also return ErrSuspended, ErrBusy or a
// *TooManyGuessesError. browser identifies a browser that has signed in with this address before, or is empty.
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
		email = a.Email // all spellings of the address share one allowance
	}
	hashing := ctx
	if browser != "" {
		hashing = asKnown(ctx, email)
	}
	check := func() error { return a.check(hashing, password) }
	if err := s.guess(ctx, s.signInAllowance(email, browser), check); err != nil {
		return Account{}, err
	}
	if !a.Active {
		return Account{}, ErrSuspended
	}
	return a, nil
}

// check compares the password with the account's hash. It always computes a hash, so its duration reveals nothing about
// the account.
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

// ByID returns an active account. Otherwise it returns ErrNotFound or ErrSuspended.
func (s *Service) ByID(ctx context.Context, accountID string) (Account, error) {
	a, err := s.store.AccountByID(ctx, accountID)
	if err != nil {
		return Account{}, err
	}
	return active(a)
}

func newPassword(ctx context.Context, password string) (string, error) {
	if err := passwords.Check(password); err != nil {
		return "", err
	}
	return hashPassword(ctx, password)
}

// FoldEmail returns the address with its ASCII letters in lower case, because no mail server distinguishes their
// case. It keeps all other letters. The lower-case form of some is an ASCII letter, and addresses that differ in such
// a letter belong to different users.
func FoldEmail(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, strings.TrimSpace(s))
}

// formerFold returns the address as earlier versions stored it: with non-ASCII letters in lower case too, unless that
// would make them ASCII.
func formerFold(email string) string {
	return strings.Map(func(r rune) rune {
		if lower := unicode.ToLower(r); lower > unicode.MaxASCII {
			return lower
		}
		return r
	}, email)
}

// byEmail returns the account of a folded address, including an account stored by an earlier version, or
// ErrBadCredentials. A match does not prove that the caller owns the account.
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
