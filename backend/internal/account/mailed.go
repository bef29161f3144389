package account

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/mail"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

const (
	maxQueued    = 256 // mails of each kind that can wait for Serve
	mailHour     = time.Hour
	drainTimeout = 5 * time.Second // limit for sending the queued mails when Serve ends
)

// CanMail reports whether the server can send mail.
func (s *Service) CanMail() bool { return s.Mail != nil && s.Mail.Enabled() }

// SendVerification mails a link that verifies the account's address. It does nothing if the address is already
// verified. It returns ErrTooManyMails, ErrSuspended or ErrNotFound.
func (s *Service) SendVerification(ctx context.Context, accountID string) error {
	a, err := s.ByID(ctx, accountID)
	if err != nil || a.Verified() {
		return err
	}
	return s.mailLink(ctx, a, purposeVerify, VerifyLife, verificationMail)
}

// mailLink mails a link to the account's own address.
func (s *Service) mailLink(
	ctx context.Context, a Account, purpose string, life time.Duration, message func(a Account, url string) mail.Message,
) error {
	url, err := s.mailToken(ctx, a.ID, purpose, a.Email, life, MaxMails)
	if err != nil {
		return err
	}
	return s.send(ctx, message(a, url))
}

// ChangeEmail mails a link to the new address. Verify makes the change. If the account has a password, the current
// one is required. It returns ErrBadCredentials, a *TooManyGuessesError, ErrBadEmail or ErrTooManyMails, and
// ErrEmailTaken for the account's current address. If another account has the new address, the call succeeds, and
// that account's owner is informed by mail instead.
func (s *Service) ChangeEmail(ctx context.Context, accountID, newEmail, password string, by audit.Actor) error {
	email, err := normalizeEmail(newEmail)
	if err != nil {
		return err
	}
	a, err := s.ByID(ctx, accountID)
	if err != nil {
		return err
	}
	if a.HasPassword() {
		if err := s.checkOwn(ctx, a, password); err != nil {
			return err
		}
	}
	if email == a.Email {
		return ErrEmailTaken
	}
	owner, err := s.store.AccountByEmail(ctx, email)
	if err != nil && !errors.Is(err, ErrBadCredentials) {
		return err
	}
	url, err := s.mailToken(ctx, a.ID, purposeEmail, email, VerifyLife, MaxMails)
	full := errors.Is(err, ErrAddressMailed)
	if err != nil && !full {
		return err
	}
	e := s.entry(a.ID, by, "account.email_asked", "requested a change of e-mail address")
	if err := s.audit.InsertAudit(ctx, e); err != nil {
		return err
	}
	if full {
		s.log.WarnContext(ctx, "dropped change-of-address mail: too many e-mails to the address", "account", a.ID)
		return nil
	}
	if owner.ID != "" { // inform the owner of the address rather than the caller
		return s.send(ctx, addressWantedMail(owner))
	}
	return s.send(ctx, newAddressMail(a, email, url))
}

// Verify consumes a link mailed by SendVerification or ChangeEmail. accountID is the signed-in account. It must own
// the link: otherwise the real owner of a mailbox could confirm the address for a stranger who signed up with it.
// It returns ErrBadToken, ErrOthersToken, ErrEmailTaken or ErrSuspended.
func (s *Service) Verify(ctx context.Context, accountID, token string) error {
	t, err := s.mailed(ctx, token, purposeVerify, purposeEmail)
	if err != nil {
		return err
	}
	if t.AccountID != accountID {
		return ErrOthersToken
	}
	before, err := s.ByID(ctx, t.AccountID)
	if err != nil {
		return err
	}
	e := s.entry(t.AccountID, audit.Person(), "account.email_verified", "proved the e-mail address")
	if t.NewEmail() {
		e = s.entry(t.AccountID, audit.Person(), "account.email_changed", "changed the e-mail address")
	}
	if err := s.store.ConfirmEmail(ctx, t, s.now(), e); err != nil {
		return err
	}
	if t.NewEmail() {
		s.notice(ctx, emailChangedMail(before))
	}
	return nil
}

// ForgotPassword queues a mail with a link to set a password, if the address has an account. Serve sends the mail, so
// the call takes the same time for every address. It returns ErrBadEmail for an invalid address.
func (s *Service) ForgotPassword(ctx context.Context, email string) error {
	email, err := normalizeEmail(email)
	if err != nil {
		return err
	}
	select {
	case s.forgot <- email:
	default:
		s.log.WarnContext(ctx, "dropped password reset mail: queue is full")
	}
	return nil
}

// Serve sends the mails queued by ForgotPassword, RequestSignUp and LinkMade until ctx ends, then spends up to
// drainTimeout on the remaining ones. It also deletes old counters of wrong passwords.
func (s *Service) Serve(ctx context.Context) error {
	sweep := time.NewTicker(guessEvery)
	defer sweep.Stop()
	s.sweepGuesses(ctx)
	for {
		select {
		case <-ctx.Done():
			s.drain(ctx)
			return nil
		case email := <-s.forgot:
			s.briefly(ctx, func(ctx context.Context) { s.sendReset(ctx, email) })
		case m := <-s.signUps:
			s.briefly(ctx, func(ctx context.Context) { s.mailSignUp(ctx, m) })
		case l := <-s.linked:
			s.briefly(ctx, func(ctx context.Context) { s.mailNewLink(ctx, l) })
		case <-sweep.C:
			s.sweepGuesses(ctx)
		}
	}
}

func (s *Service) sweepGuesses(ctx context.Context) {
	if err := s.store.SweepGuesses(ctx, s.now()); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "failed to delete old counters of wrong passwords", "err", err)
	}
}

// briefly runs work with a short timeout, even after ctx has ended.
func (s *Service) briefly(ctx context.Context, work func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	work(ctx)
}

// drain sends the mails that are still queued when Serve ends.
func (s *Service) drain(ctx context.Context) {
	s.briefly(ctx, func(ctx context.Context) {
		for {
			select {
			case email := <-s.forgot:
				s.sendReset(ctx, email)
			case m := <-s.signUps:
				s.mailSignUp(ctx, m)
			case l := <-s.linked:
				s.mailNewLink(ctx, l)
			default:
				return
			}
		}
	})
}

func (s *Service) sendReset(ctx context.Context, email string) {
	if err := s.mailReset(ctx, email); err != nil {
		s.log.WarnContext(ctx, "failed to mail password reset link", "err", err)
	}
}

func (s *Service) mailReset(ctx context.Context, email string) error {
	a, err := s.byEmail(ctx, email) // send to the address as stored in the account
	if errors.Is(err, ErrBadCredentials) || err == nil && !a.Active {
		return nil
	}
	if err != nil {
		return err
	}
	return s.mailLink(ctx, a, purposeReset, ResetLife, resetMail)
}

// ResetLink returns the URL of a page that sets a new password, for an operator to pass to the account holder.
// It invalidates earlier reset links. It returns ErrBadEmail, ErrNotFound or ErrSuspended.
func (s *Service) ResetLink(ctx context.Context, email string, by audit.Actor) (string, error) {
	email, err := normalizeEmail(email)
	if err != nil {
		return "", err
	}
	a, err := s.byEmail(ctx, email)
	switch {
	case errors.Is(err, ErrBadCredentials):
		return "", ErrNotFound
	case err != nil:
		return "", err
	case !a.Active:
		return "", ErrSuspended
	}
	e := s.entry(a.ID, by, "account.reset_link_made", "created a password reset link")
	if err := s.audit.InsertAudit(ctx, e); err != nil {
		return "", err
	}
	return s.mailToken(ctx, a.ID, purposeReset, a.Email, ResetLife, 0)
}

// ResetPassword consumes a mailed link and sets the password, signs out every browser and revokes the access that
// revoke selects. If the address was unverified, it revokes all Access, because someone else may have created the
// account. It returns ErrBadToken, ErrBadPassword or ErrSuspended.
func (s *Service) ResetPassword(ctx context.Context, token, newPass string, revoke Access) (Account, error) {
	t, err := s.mailed(ctx, token, purposeReset)
	if err != nil {
		return Account{}, err
	}
	hashed, err := newPassword(asKnown(ctx, t.AccountID), newPass)
	if err != nil {
		return Account{}, err
	}
	summary := "set a new password with a mailed link"
	if names := revoke.names(); len(names) > 0 {
		summary += "; removed " + strings.Join(names, ", ")
	}
	e := s.entry(t.AccountID, audit.Person(), "account.password_changed", "%s", summary)
	if err := s.store.ResetPassword(ctx, t, hashed, revoke, s.now(), e, s.trace(audit.TrailRevoke)); err != nil {
		return Account{}, err
	}
	s.ended(t.AccountID)
	a, err := s.ByID(ctx, t.AccountID)
	if err != nil {
		return Account{}, err
	}
	s.notice(ctx, passwordChangedMail(a))
	return a, nil
}

// ChangePassword requires the current password and signs out every other browser. It returns ErrBadCredentials, a
// *TooManyGuessesError or ErrBadPassword.
func (s *Service) ChangePassword(
	ctx context.Context, accountID, current, newPass, keepSecret string, by audit.Actor,
) error {
	a, err := s.ByID(ctx, accountID)
	if err != nil {
		return err
	}
	if err := s.checkOwn(ctx, a, current); err != nil {
		return err
	}
	e := s.entry(a.ID, by, "account.password_changed", "changed the password")
	return s.putPassword(ctx, a, newPass, keepSecret, e)
}

// SetPassword sets the first password of an account. It returns ErrHasPassword or ErrBadPassword.
func (s *Service) SetPassword(ctx context.Context, accountID, newPass, keepSecret string, by audit.Actor) error {
	a, err := s.ByID(ctx, accountID)
	if err != nil {
		return err
	}
	if a.HasPassword() {
		return ErrHasPassword
	}
	return s.putPassword(ctx, a, newPass, keepSecret, s.entry(a.ID, by, "account.password_changed", "set a password"))
}

func (s *Service) putPassword(ctx context.Context, a Account, newPass, keepSecret string, e audit.Entry) error {
	hashed, err := newPassword(asKnown(ctx, a.ID), newPass)
	if err != nil {
		return err
	}
	if err := s.store.SetPassword(ctx, a.PasswordHash, hashed, s.keepHash(keepSecret), e); err != nil {
		return err
	}
	s.ended(a.ID)
	s.notice(ctx, passwordChangedMail(a))
	return nil
}

// CheckPassword checks the account's password. It returns ErrBadCredentials or a *TooManyGuessesError.
func (s *Service) CheckPassword(ctx context.Context, accountID, password string) error {
	a, err := s.ByID(ctx, accountID)
	if err != nil {
		return err
	}
	return s.checkOwn(ctx, a, password)
}

// mailToken stores a new link and returns its URL, which is secret.
func (s *Service) mailToken(
	ctx context.Context, accountID, purpose, email string, life time.Duration, limit int,
) (string, error) {
	token, now := secret.New(credential.Mail), s.now()
	err := s.store.InsertMailToken(ctx, MailToken{
		Hash: s.mailHash(token), AccountID: accountID, Purpose: purpose, Email: email, CreatedAt: now,
		ExpiresAt: now.Add(life),
	}, now.Add(-mailHour), limit)
	page := "/verify?token="
	if purpose == purposeReset {
		page = "/reset?token="
	}
	return s.SiteURL + page + token, err
}

func (s *Service) mailed(ctx context.Context, token string, purposes ...string) (MailToken, error) {
	if !secret.Valid(credential.Mail, token) {
		return MailToken{}, ErrBadToken
	}
	t, err := s.store.MailToken(ctx, s.mailHash(token), s.now())
	if err != nil {
		return MailToken{}, err
	}
	if !slices.Contains(purposes, t.Purpose) {
		return MailToken{}, ErrBadToken
	}
	return t, nil
}

func (s *Service) mailHash(token string) string { return s.hash.Hash("mailed link", token) }

func (s *Service) send(ctx context.Context, m mail.Message) error {
	if s.Mail == nil {
		s.log.WarnContext(ctx, "dropped mail: no mail server is configured", "account", m.AccountID)
		return nil
	}
	return s.Mail.Queue(m)
}

// PasskeyAdded mails a notice that a passkey was added to the account.
func (s *Service) PasskeyAdded(ctx context.Context, accountID string) {
	s.sendNotice(ctx, accountID, passkeyAddedMail)
}

// SpendingNotice mails a notice that most of the credit, or of a cap, is spent. text describes the amount. path is the
// path of the page about the spending.
func (s *Service) SpendingNotice(ctx context.Context, accountID, text, path string) {
	s.sendNotice(ctx, accountID, func(a Account) mail.Message { return spendingMail(a, text, s.SiteURL+path) })
}

// sendNotice mails the message to the account.
func (s *Service) sendNotice(ctx context.Context, accountID string, message func(Account) mail.Message) {
	a, err := s.ByID(ctx, accountID)
	if err != nil {
		s.log.WarnContext(ctx, "failed to mail notice", "account", accountID, "err", err)
		return
	}
	s.notice(ctx, message(a))
}

// notice queues a mail about a change. It only logs a failure, so that a failure does not undo the change.
func (s *Service) notice(ctx context.Context, m mail.Message) {
	if err := s.send(ctx, m); err != nil {
		s.log.WarnContext(ctx, "failed to queue notice", "account", m.AccountID, "err", err)
	}
}
