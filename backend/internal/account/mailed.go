package account

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/mail"
	"github.com/service-dev/service/backend/internal/secret"
)

const (
	// maxForgot bounds the forgotten passwords that wait for Serve.
	maxForgot = 256
	maxLinked = 256 // the same of new links
	mailHour  = time.Hour
	parting   = 5 * time.Second // for what waits when Serve ends
)

// CanMail tells whether links can be mailed at all.
func (s *Service) CanMail() bool { return s.Mail != nil && s.Mail.Enabled() }

// SendVerification mails a link that proves the account's address. Nothing is sent when it is proved already.
// ErrTooManyMails, ErrSuspended, ErrNotFound.
func (s *Service) SendVerification(ctx context.Context, accountID string) error {
	a, err := s.ByID(ctx, accountID)
	if err != nil || a.Verified() {
		return err
	}
	url, err := s.mailToken(ctx, a.ID, purposeVerify, a.Email, VerifyLife, MaxMails)
	if err != nil {
		return err
	}
	return s.send(ctx, verificationMail(a, url))
}

// ChangeEmail mails a link to the new address; Verify makes the change. The current password is asked for where there
// is one: ErrBadCredentials, *TooManyGuessesError, ErrBadEmail, ErrTooManyMails, and for the account's own address
// ErrEmailTaken. Only the owner of an address learns that an account has it.
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
	if err := s.store.InsertAudit(ctx, s.entry(a.ID, by, "account.email_asked", "asked for another e-mail address")); err != nil {
		return err
	}
	if full {
		s.log.WarnContext(ctx, "a change of address is not mailed: the address had enough within the hour", "account", a.ID)
		return nil
	}
	if owner.ID != "" { // its owner learns of it, and who asked does not
		return s.send(ctx, addressWantedMail(owner))
	}
	return s.send(ctx, newAddressMail(a, email, url))
}

// Verify uses a mailed link of SendVerification or ChangeEmail for who is signed in to the account that asked for it:
// who only reads the mail may be somebody else, and must not confirm the address for whoever made the account.
// ErrBadToken, ErrOthersToken, ErrEmailTaken, ErrSuspended.
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

// ForgotPassword has a link to a new password mailed, if the address has an account. The answer and its time are the
// same for every address: Serve does the rest. ErrBadEmail.
func (s *Service) ForgotPassword(ctx context.Context, email string) error {
	email, err := normalizeEmail(email)
	if err != nil {
		return err
	}
	select {
	case s.forgot <- email:
	default:
		s.log.WarnContext(ctx, "a forgotten password is dropped: too many wait")
	}
	return nil
}

// Serve mails what ForgotPassword, RequestSignUp and LinkMade left, until ctx ends, and then, for a few seconds, what still waits. It
// sweeps the counts of wrong passwords too.
func (s *Service) Serve(ctx context.Context) error {
	sweep := time.NewTicker(guessEvery)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			s.part(ctx)
			return nil
		case email := <-s.forgot:
			s.briefly(ctx, func(ctx context.Context) { s.sendReset(ctx, email) })
		case m := <-s.signUps:
			s.briefly(ctx, func(ctx context.Context) { s.mailSignUp(ctx, m) })
		case l := <-s.linked:
			s.briefly(ctx, func(ctx context.Context) { s.tellLinked(ctx, l) })
		case <-sweep.C:
			if err := s.store.SweepGuesses(ctx, s.now()); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "sweeping counts of wrong passwords", "err", err)
			}
		}
	}
}

// briefly does a piece of work in bounded time; the end of ctx does not cut it off.
func (s *Service) briefly(ctx context.Context, work func(context.Context)) {
	one, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	work(one)
}

// part does what waits when Serve ends.
func (s *Service) part(ctx context.Context) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	for {
		select {
		case email := <-s.forgot:
			s.sendReset(last, email)
		case m := <-s.signUps:
			s.mailSignUp(last, m)
		case l := <-s.linked:
			s.tellLinked(last, l)
		default:
			return
		}
	}
}

func (s *Service) sendReset(ctx context.Context, email string) {
	if err := s.mailReset(ctx, email); err != nil {
		s.log.WarnContext(ctx, "mailing a link to a new password", "err", err)
	}
}

func (s *Service) mailReset(ctx context.Context, email string) error {
	a, err := s.byEmail(ctx, email) // the mail goes to the account's own address
	if errors.Is(err, ErrBadCredentials) || err == nil && !a.Active {
		return nil
	}
	if err != nil {
		return err
	}
	url, err := s.mailToken(ctx, a.ID, purposeReset, a.Email, ResetLife, MaxMails)
	if err != nil {
		return err
	}
	return s.send(ctx, resetMail(a, url))
}

// ResetLink makes the address of a page that sets a new password, for an operator to hand over: ErrBadEmail,
// ErrNotFound, ErrSuspended. It replaces a link that was mailed before.
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
	if err := s.store.InsertAudit(ctx, s.entry(a.ID, by, "account.reset_link_made", "made a link to a new password")); err != nil {
		return "", err
	}
	return s.mailToken(ctx, a.ID, purposeReset, a.Email, ResetLife, 0)
}

// ResetPassword uses a mailed link to set a password, and signs every browser out: ErrBadToken, ErrBadPassword,
// ErrSuspended. What revoke says goes too. Where the address was not proved before, somebody else may have made the
// account: all Access goes then.
func (s *Service) ResetPassword(ctx context.Context, token, newPass string, revoke Access) (Account, error) {
	t, err := s.mailed(ctx, token, purposeReset)
	if err != nil {
		return Account{}, err
	}
	hashed, err := newPassword(ctx, newPass)
	if err != nil {
		return Account{}, err
	}
	summary := "set a new password by a mailed link"
	if words := revoke.words(); len(words) > 0 {
		summary += "; removed " + strings.Join(words, ", ")
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

// ChangePassword needs the current password: ErrBadCredentials, *TooManyGuessesError, ErrBadPassword. It signs every other browser out.
func (s *Service) ChangePassword(ctx context.Context, accountID, current, newPass, keepSecret string, by audit.Actor) error {
	a, err := s.ByID(ctx, accountID)
	if err != nil {
		return err
	}
	if err := s.checkOwn(ctx, a, current); err != nil {
		return err
	}
	return s.putPassword(ctx, a, newPass, keepSecret, s.entry(a.ID, by, "account.password_changed", "changed the password"))
}

// SetPassword gives an account without a password its first: ErrHasPassword, ErrBadPassword.
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
	hashed, err := newPassword(ctx, newPass)
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

// CheckPassword confirms that the person knows it: ErrBadCredentials, *TooManyGuessesError.
func (s *Service) CheckPassword(ctx context.Context, accountID, password string) error {
	a, err := s.ByID(ctx, accountID)
	if err != nil {
		return err
	}
	return s.checkOwn(ctx, a, password)
}

// mailToken makes a link of a purpose and gives its address, a secret.
func (s *Service) mailToken(ctx context.Context, accountID, purpose, email string, life time.Duration, most int) (string, error) {
	token, now := secret.New(secret.Mail), s.now()
	err := s.store.InsertMailToken(ctx, MailToken{Hash: s.mailHash(token), AccountID: accountID, Purpose: purpose, Email: email,
		CreatedAt: now, ExpiresAt: now.Add(life)}, now.Add(-mailHour), most)
	page := "/verify?token="
	if purpose == purposeReset {
		page = "/reset?token="
	}
	return s.SiteURL + page + token, err
}

func (s *Service) mailed(ctx context.Context, token string, purposes ...string) (MailToken, error) {
	if !secret.Valid(secret.Mail, token) {
		return MailToken{}, ErrBadToken
	}
	t, err := s.store.MailToken(ctx, s.mailHash(token), s.now())
	if err != nil {
		return MailToken{}, err
	}
	for _, p := range purposes {
		if t.Purpose == p {
			return t, nil
		}
	}
	return MailToken{}, ErrBadToken
}

func (s *Service) mailHash(token string) string { return s.hash.Hash("mailed link", token) }

func (s *Service) send(ctx context.Context, m mail.Message) error {
	if s.Mail == nil {
		s.log.WarnContext(ctx, "a mail is not sent: there is no mail server", "account", m.AccountID)
		return nil
	}
	return s.Mail.Queue(m)
}

// PasskeyAdded mails the account's person that a passkey was added.
func (s *Service) PasskeyAdded(ctx context.Context, accountID string) {
	s.tell(ctx, accountID, passkeyAddedMail)
}

// tell mails a notice to the account's address.
func (s *Service) tell(ctx context.Context, accountID string, words func(Account) mail.Message) {
	a, err := s.ByID(ctx, accountID)
	if err != nil {
		s.log.WarnContext(ctx, "mailing a notice", "account", accountID, "err", err)
		return
	}
	s.notice(ctx, words(a))
}

// notice sends what the person should know and what must not undo a change that is made.
func (s *Service) notice(ctx context.Context, m mail.Message) {
	if err := s.send(ctx, m); err != nil {
		s.log.WarnContext(ctx, "mailing a notice", "account", m.AccountID, "err", err)
	}
}
