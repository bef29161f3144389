package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/oidc"
	"github.com/service-dev/service/backend/internal/passkey"
)

// fakeSettings implements the sign-in services in memory, with the accounts of a fakeAccounts. Tokens are plain words.
type fakeSettings struct {
	*fakeAccounts
	mail       bool
	verified   map[string]bool // by account ID
	visits     map[string]account.Visit
	since      map[string]time.Time // sign-in times of sessions, by secret
	tokens     map[string]string    // mailed tokens to account IDs
	mails      []string
	identities map[string][]account.LinkedIdentity
	identity   oidc.Identity // the identity that the provider returns next
	refusal    error         // the error that the provider returns next
	signInErr  error
	site       string // the provider's address
	keys       []passkey.Passkey
	deleted    string
	revoked    account.Access // access revoked by the last password reset
	asked      account.PendingSignUp
	exportErr  error
	exportSize int           // additional size of the export, in bytes
	exported   chan struct{} // closed once the export is written
	exporting  func()        // called while the export is being written
}

func newFakeSettings() *fakeSettings {
	return &fakeSettings{
		fakeAccounts: newFake(code), mail: true, site: fakeProviderSite, verified: map[string]bool{},
		visits: map[string]account.Visit{}, since: map[string]time.Time{},
		tokens: map[string]string{}, identities: map[string][]account.LinkedIdentity{},
	}
}

// all sets every service of the pages to the fake.
func (f *fakeSettings) all(o *Options) { o.Accounts, o.Settings, o.Providers, o.Passkeys = f, f, f, f }

func (f *fakeSettings) OpenSession(ctx context.Context, id string, v account.Visit) (string, error) {
	secret, err := f.fakeAccounts.OpenSession(ctx, id, v)
	f.visits[secret], f.since[secret] = v, time.Now()
	return secret, err
}

func (f *fakeSettings) ByID(_ context.Context, id string) (account.Account, error) {
	email := strings.TrimPrefix(id, "id-")
	password, ok := f.people[email]
	if !ok {
		return account.Account{}, account.ErrNotFound
	}
	a := account.Account{ID: id, Email: email, PasswordHash: password, Active: true}
	if f.verified[id] {
		a.VerifiedAt = time.Now()
	}
	return a, nil
}

func (f *fakeSettings) CheckPassword(_ context.Context, id, password string) error {
	if f.people[strings.TrimPrefix(id, "id-")] != password {
		return account.ErrBadCredentials
	}
	return nil
}

func (f *fakeSettings) ChangePassword(ctx context.Context, id, current, password, keep string, by audit.Actor) error {
	if err := f.CheckPassword(ctx, id, current); err != nil {
		return err
	}
	return f.setPassword(ctx, id, password, keep, by)
}

func (f *fakeSettings) SetPassword(ctx context.Context, id, password, keep string, by audit.Actor) error {
	return f.setPassword(ctx, id, password, keep, by)
}

func (f *fakeSettings) setPassword(ctx context.Context, id, password, keep string, by audit.Actor) error {
	f.people[strings.TrimPrefix(id, "id-")] = password
	_, err := f.EndOtherSessions(ctx, id, keep, by)
	return err
}

func (f *fakeSettings) ChangeEmail(ctx context.Context, id, email, password string, _ audit.Actor) error {
	if id == "id-"+email {
		return account.ErrEmailTaken
	}
	if err := f.CheckPassword(ctx, id, password); err != nil {
		return err
	}
	f.mails = append(f.mails, email)
	return nil
}

func (f *fakeSettings) Sessions(_ context.Context, id, current string) (open []account.BrowserSession, err error) {
	for secret, a := range f.sessions {
		if a.ID == id {
			open = append(open, account.BrowserSession{ID: "of-" + secret, Visit: f.visits[secret], CreatedAt: f.since[secret],
				UsedAt: f.since[secret], Current: secret == current})
		}
	}
	return open, nil
}

func (f *fakeSettings) EndSession(_ context.Context, id, session string, _ audit.Actor) error {
	secret := strings.TrimPrefix(session, "of-")
	if a, ok := f.sessions[secret]; !ok || a.ID != id {
		return account.ErrNotFound
	}
	delete(f.sessions, secret)
	return nil
}

func (f *fakeSettings) EndOtherSessions(_ context.Context, id, keep string, _ audit.Actor) (n int, err error) {
	for secret, a := range f.sessions {
		if a.ID == id && secret != keep {
			delete(f.sessions, secret)
			n++
		}
	}
	return n, nil
}

func (f *fakeSettings) CanMail() bool { return f.mail }

func (f *fakeSettings) SendVerification(_ context.Context, id string) error {
	f.mails = append(f.mails, id)
	return nil
}

func (f *fakeSettings) Verify(_ context.Context, accountID, token string) error {
	id, ok := f.tokens[token]
	switch {
	case !ok:
		return account.ErrBadToken
	case id != accountID:
		return account.ErrOthersToken
	}
	delete(f.tokens, token)
	f.verified[id] = true
	return nil
}

func (f *fakeSettings) ForgotPassword(_ context.Context, email string) error {
	f.mails = append(f.mails, email)
	return nil
}

func (f *fakeSettings) ResetPassword(ctx context.Context, token, password string,
	revoke account.Access) (account.Account, error) {
	id, ok := f.tokens[token]
	if !ok {
		return account.Account{}, account.ErrBadToken
	}
	delete(f.tokens, token)
	f.revoked = revoke
	if err := f.setPassword(ctx, id, password, "", audit.Person()); err != nil {
		return account.Account{}, err
	}
	return f.ByID(ctx, id)
}

func (f *fakeSettings) SignInWith(ctx context.Context, id account.Identity) (account.Account, error) {
	if f.signInErr != nil {
		return account.Account{}, f.signInErr
	}
	for owner, list := range f.identities {
		for _, l := range list {
			if l.Provider == id.Provider && l.Subject == id.Subject {
				return f.ByID(ctx, owner)
			}
		}
	}
	return account.Account{}, account.ErrNeedsConsent
}

// RequestSignUp accepts one mailed link, for an address without an account. It stores the passwords of sign-ups
// unhashed.
func (f *fakeSettings) RequestSignUp(_ context.Context, email, password, next string) error {
	f.mails = append(f.mails, email)
	f.asked = account.PendingSignUp{Email: email, PasswordHash: password, Next: next}
	return nil
}

func (f *fakeSettings) FinishSignUp(ctx context.Context, token, password string) (account.Account, string, error) {
	switch {
	case token != "sml_signup" || f.asked.Email == "":
		return account.Account{}, "", account.ErrBadToken
	case f.asked.PasswordHash != password:
		return account.Account{}, "", account.ErrBadCredentials
	}
	next := f.asked.Next
	a, err := f.SignUp(ctx, f.asked.Email, password)
	f.asked = account.PendingSignUp{}
	return a, next, err
}

func (f *fakeSettings) SignUpWith(ctx context.Context, id account.Identity) (account.Account, error) {
	if _, taken := f.people[id.Email]; taken {
		return account.Account{}, account.ErrEmailTaken
	}
	f.people[id.Email] = ""
	if err := f.LinkIdentity(ctx, "id-"+id.Email, id, audit.Person()); err != nil {
		return account.Account{}, err
	}
	return f.ByID(ctx, "id-"+id.Email)
}

func (f *fakeSettings) Identities(_ context.Context, id string) ([]account.LinkedIdentity, error) {
	return f.identities[id], nil
}

func (f *fakeSettings) LinkIdentity(_ context.Context, owner string, id account.Identity, _ audit.Actor) error {
	for other, list := range f.identities {
		for _, l := range list {
			if other != owner && l.Subject == id.Subject {
				return account.ErrIdentityTaken
			}
		}
	}
	f.identities[owner] = append(f.identities[owner],
		account.LinkedIdentity{Provider: id.Provider, Subject: id.Subject, Email: id.Email, LinkedAt: time.Now()})
	return nil
}

func (f *fakeSettings) Unlink(_ context.Context, owner, _, _, _ string, _ audit.Actor) error {
	if f.people[strings.TrimPrefix(owner, "id-")] == "" {
		return account.ErrLastWayIn
	}
	delete(f.identities, owner)
	return nil
}

func (f *fakeSettings) Export(_ context.Context, id string, to io.Writer, _ audit.Actor) error {
	if f.exportErr != nil {
		return f.exportErr
	}
	if f.exported != nil {
		defer close(f.exported)
	}
	if f.exporting != nil {
		f.exporting()
	}
	_, err := io.WriteString(to, `{"account":"`+id+`"}`+strings.Repeat(" ", f.exportSize))
	return err
}

func (f *fakeSettings) Delete(ctx context.Context, id string, by audit.Actor) error {
	delete(f.people, strings.TrimPrefix(id, "id-"))
	f.deleted = id
	_, err := f.EndOtherSessions(ctx, id, "", by)
	return err
}

const fakeProviderSite = "https://login.acme.example"

func (f *fakeSettings) Providers() []oidc.Provider {
	return []oidc.Provider{{ID: "acme", Name: "Acme"}}
}

func (f *fakeSettings) Begin(_ context.Context, provider, back string) (oidc.Attempt, error) {
	if provider != "acme" {
		return oidc.Attempt{}, oidc.ErrUnknownProvider
	}
	return oidc.Attempt{Provider: provider, RedirectURL: back, URL: f.site + "/authorize?state=st4te&redirect_uri=" +
		url.QueryEscape(back), State: "st4te"}, nil
}

func (f *fakeSettings) Finish(_ context.Context, a oidc.Attempt, answer url.Values) (oidc.Identity, error) {
	if f.refusal != nil {
		return oidc.Identity{}, f.refusal
	}
	if answer.Get("state") != a.State {
		return oidc.Identity{}, oidc.ErrInvalidAnswer
	}
	return f.identity, nil
}

func (f *fakeSettings) BeginLogin(context.Context) ([]byte, string, error) {
	return []byte(`{"publicKey":{"challenge":"AAAA"}}`), "sealed", nil
}

func (f *fakeSettings) FinishLogin(_ context.Context, sealed string, response []byte) (string, error) {
	switch {
	case sealed != "sealed":
		return "", passkey.ErrInvalid
	case string(response) == "clone":
		return "", passkey.ErrClone
	}
	for _, k := range f.keys {
		if k.ID == string(response) {
			return "id-ada@example.org", nil
		}
	}
	return "", passkey.ErrUnknown
}

func (f *fakeSettings) BeginRegister(context.Context, string) ([]byte, string, error) {
	return []byte(`{"publicKey":{"challenge":"AAAA"}}`), "sealed", nil
}

func (f *fakeSettings) FinishRegister(_ context.Context, _, sealed string, response []byte, name string,
	_ audit.Actor) (passkey.Passkey, error) {
	if sealed != "sealed" {
		return passkey.Passkey{}, passkey.ErrInvalid
	}
	k := passkey.Passkey{ID: string(response), Name: name, CreatedAt: time.Now()}
	f.keys = append(f.keys, k)
	return k, nil
}

func (f *fakeSettings) List(context.Context, string) ([]passkey.Passkey, error) { return f.keys, nil }

func (f *fakeSettings) Remove(_ context.Context, _, id string, _ audit.Actor) error {
	for i, k := range f.keys {
		if k.ID == id {
			f.keys = append(f.keys[:i:i], f.keys[i+1:]...)
			return nil
		}
	}
	return passkey.ErrUnknown
}

var errDisk = errors.New("disk full")

// onward follows the last response's redirect within this site.
func (v *visitor) onward() *visitor {
	v.t.Helper()
	v.want(http.StatusSeeOther)
	return v.get(v.header.Get("Location"))
}

// send posts the last page's tokens and the given pairs.
func (v *visitor) send(path string, pairs ...string) *visitor {
	v.t.Helper()
	form := v.tokens()
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return v.post(path, form)
}

// another returns a second browser on the same site.
func another(v *visitor) *visitor {
	v.t.Helper()
	return visit(v.t, &httptest.Server{URL: v.site})
}
