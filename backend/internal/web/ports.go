package web

import (
	"context"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/link"
)

// Account contains the data about the signed-in account that pages need.
type Account struct {
	ID    string
	Email string
}

// Accounts creates accounts, checks passwords and stores browser sessions. It returns the errors of package account.
type Accounts interface {
	SignUp(ctx context.Context, email, password string) (account.Account, error)
	// SignIn checks a password. browser is the name of a browser that has signed in with this address before, or "".
	SignIn(ctx context.Context, email, password, browser string) (account.Account, error)
	// OpenSession returns the secret for the cookie.
	OpenSession(ctx context.Context, accountID string, v account.Visit) (string, error)
	FindSession(ctx context.Context, secret string) (account.Account, error)
	CloseSession(ctx context.Context, secret string) error
}

// Links shows and decides pending link requests. It returns the errors of package link.
type Links interface {
	View(ctx context.Context, userCode string) (link.Code, error)
	Approve(ctx context.Context, userCode, accountID string) error
	Deny(ctx context.Context, userCode string) error
	// Throttled records that the client in ctx was refused for sending too many requests.
	Throttled(ctx context.Context)
}

// isCodeGone reports whether a code is unknown, expired or used. Pages must not distinguish these cases.
func isCodeGone(err error) bool {
	return isAny(err, []error{link.ErrUnknown, link.ErrExpired, link.ErrDenied, link.ErrNotPending})
}
