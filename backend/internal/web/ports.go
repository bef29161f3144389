package web

import (
	"context"
	"errors"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/link"
)

// Account is the signed-in person as far as a page needs to know.
type Account struct {
	ID    string
	Email string
}

// Accounts signs people up and in, and keeps who is signed in in which browser. Errors are package account's.
type Accounts interface {
	SignUp(ctx context.Context, email, password string) (account.Account, error)
	// SignIn takes the name of a browser that has signed in with this address before, or "".
	SignIn(ctx context.Context, email, password, browser string) (account.Account, error)
	// OpenSession gives the secret that goes into the cookie.
	OpenSession(ctx context.Context, accountID string, v account.Visit) (string, error)
	FindSession(ctx context.Context, secret string) (account.Account, error)
	CloseSession(ctx context.Context, secret string) error
}

// Links shows and decides pending link requests. Errors are package link's.
type Links interface {
	View(ctx context.Context, userCode string) (link.Code, error)
	Approve(ctx context.Context, userCode, accountID string) error
	Deny(ctx context.Context, userCode string) error
	// Throttled notes that the caller in ctx was refused for asking too often.
	Throttled(ctx context.Context)
}

// noLonger covers an unknown, an expired and a used code: a page must not tell them apart.
func noLonger(err error) bool {
	for _, known := range []error{link.ErrUnknown, link.ErrExpired, link.ErrDenied, link.ErrNotPending} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
