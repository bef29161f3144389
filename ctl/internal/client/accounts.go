package client

import (
	"context"
	"unicode/utf8"

	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// NewPassword is a request to set the password of an embedded backend's account. Password is a secret.
type NewPassword struct {
	Email, Password             string
	RevokeLinks, RemovePasskeys bool
}

var errNotUTF8 = &Error{Code: "invalid_request", Message: "the e-mail address or the password is not UTF-8",
	FixHint: "Use a terminal or a file in UTF-8."}

// LocalAccounts lists the first accounts of the embedded backend, oldest first. With an email address it returns only
// the matching account, or none.
func (c *Client) LocalAccounts(ctx context.Context, email string) ([]*LocalAccount, error) {
	if !utf8.ValidString(email) {
		return nil, errNotUTF8
	}
	r, err := c.api.ListAccounts(ctx, &controlv1.ListAccountsRequest{Caller: c.caller, Email: email})
	return r.GetAccounts(), refusal(err)
}

// ResetPassword sets a new password for an account of the embedded backend.
func (c *Client) ResetPassword(ctx context.Context, p NewPassword) (*PasswordReset, error) {
	if !utf8.ValidString(p.Email) || !utf8.ValidString(p.Password) {
		return nil, errNotUTF8
	}
	r, err := c.api.ResetPassword(ctx, &controlv1.ResetPasswordRequest{
		Caller: c.caller, Email: p.Email, Password: p.Password,
		RevokeLinks: p.RevokeLinks, RemovePasskeys: p.RemovePasskeys,
	})
	return r, refusal(err)
}
