package web

import (
	"context"
	"errors"
	"time"
)

// Errors that the interfaces below return and that the pages answer with words of their own.
var (
	// ErrEmailTaken: another account has this e-mail address already.
	ErrEmailTaken = errors.New("e-mail address is taken")
	// ErrBadCredentials covers an unknown address and a wrong password alike.
	ErrBadCredentials = errors.New("e-mail address or password is wrong")
	// ErrNoSession: the cookie names no live browser session.
	ErrNoSession = errors.New("no such browser session")
	// ErrNoCode covers an unknown, an expired and a used code alike, so that a page cannot tell them apart.
	ErrNoCode = errors.New("no such pending code")
)

// Account is the signed-in person as far as a page needs to know.
type Account struct {
	ID    string
	Email string
}

// Accounts signs people up and in.
type Accounts interface {
	// SignUp creates an account of a person who has accepted the privacy policy, or returns ErrEmailTaken.
	SignUp(ctx context.Context, email, password string) (Account, error)
	// SignIn checks a password, or returns ErrBadCredentials.
	SignIn(ctx context.Context, email, password string) (Account, error)
}

// Sessions keeps who is signed in in which browser. The secret is the cookie's value; only its hash is stored.
type Sessions interface {
	Open(ctx context.Context, accountID string) (secret string, err error)
	// Find returns ErrNoSession for an unknown, expired or closed one.
	Find(ctx context.Context, secret string) (Account, error)
	Close(ctx context.Context, secret string) error
}

// LinkRequest tells who asks to be linked. All text comes from the requester and is not to be trusted.
type LinkRequest struct {
	UserCode    string // normalised, XXXX-XXXX
	Host        string // may be empty
	OS          string // may be empty
	Client      string // may be empty
	IP          string
	RequestedAt time.Time
	ExpiresAt   time.Time
}

// Links shows and decides pending link requests. A user code is accepted in any case, with or without the dash.
// Every method returns ErrNoCode for a code that is not pending.
type Links interface {
	Pending(ctx context.Context, userCode string) (LinkRequest, error)
	Approve(ctx context.Context, userCode, accountID string) error
	Deny(ctx context.Context, userCode string) error
}
