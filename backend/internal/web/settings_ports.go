package web

import (
	"context"
	"io"
	"net/url"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/oidc"
	"github.com/service-dev/service/backend/internal/passkey"
)

// Settings serves the settings of an account and mailed links. It returns the errors of package account.
type Settings interface {
	Profiles
	Browsers
	Mails
	SignUps
	Identities
	DataRights
}

// Profiles reads an account, and changes its e-mail address and password.
type Profiles interface {
	ByID(ctx context.Context, accountID string) (account.Account, error)
	CheckPassword(ctx context.Context, accountID, password string) error
	// ChangePassword and SetPassword sign out every browser except the one with the secret keep in its cookie.
	ChangePassword(ctx context.Context, accountID, current, newPassword, keep string, by audit.Actor) error
	SetPassword(ctx context.Context, accountID, newPassword, keep string, by audit.Actor) error
	ChangeEmail(ctx context.Context, accountID, newEmail, password string, by audit.Actor) error
}

// Browsers lists and ends the browser sessions of an account.
type Browsers interface {
	Sessions(ctx context.Context, accountID, current string) ([]account.BrowserSession, error)
	EndSession(ctx context.Context, accountID, id string, by audit.Actor) error
	EndOtherSessions(ctx context.Context, accountID, keep string, by audit.Actor) (int, error)
}

// SignUps completes sign-ups with a mailed link.
type SignUps interface {
	RequestSignUp(ctx context.Context, email, password, next string) error
	// FinishSignUp returns the account and the path to continue to.
	FinishSignUp(ctx context.Context, token, password string) (account.Account, string, error)
}

// Mails sends links and redeems them.
type Mails interface {
	CanMail() bool
	SendVerification(ctx context.Context, accountID string) error
	// Verify requires the account that this browser is signed in to.
	Verify(ctx context.Context, accountID, token string) error
	ForgotPassword(ctx context.Context, email string) error
	ResetPassword(ctx context.Context, token, newPassword string, revoke account.Access) (account.Account, error)
}

// Identities manages a user's accounts at sign-in providers.
type Identities interface {
	SignInWith(ctx context.Context, id account.Identity) (account.Account, error)
	SignUpWith(ctx context.Context, id account.Identity) (account.Account, error)
	Identities(ctx context.Context, accountID string) ([]account.LinkedIdentity, error)
	LinkIdentity(ctx context.Context, accountID string, id account.Identity, by audit.Actor) error
	Unlink(ctx context.Context, accountID, provider, subject, keep string, by audit.Actor) error
}

// DataRights exports and deletes all data of an account.
type DataRights interface {
	Export(ctx context.Context, accountID string, to io.Writer, by audit.Actor) error
	Delete(ctx context.Context, accountID string, by audit.Actor) error
}

// Providers signs users in with OpenID Connect providers. It returns the errors of package oidc.
type Providers interface {
	Providers() []oidc.Provider
	Begin(ctx context.Context, provider, redirectURL string) (oidc.Attempt, error)
	Finish(ctx context.Context, a oidc.Attempt, answer url.Values) (oidc.Identity, error)
}

// Passkeys adds, lists and uses passkeys. It returns the errors of package passkey.
type Passkeys interface {
	PasskeySignIn
	PasskeyManager
}

// PasskeySignIn signs in with a passkey. The browser returns sealed with its response.
type PasskeySignIn interface {
	BeginLogin(ctx context.Context) (options []byte, sealed string, err error)
	FinishLogin(ctx context.Context, sealed string, response []byte) (accountID string, err error)
}

// PasskeyManager registers, lists and removes an account's passkeys.
type PasskeyManager interface {
	BeginRegister(ctx context.Context, accountID string) (options []byte, sealed string, err error)
	FinishRegister(ctx context.Context, accountID, sealed string, response []byte, name string, by audit.Actor) (
		passkey.Passkey, error)
	List(ctx context.Context, accountID string) ([]passkey.Passkey, error)
	Remove(ctx context.Context, accountID, id string, by audit.Actor) error
}
