package app

import (
	"context"
	"errors"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/web"
)

// The types of this file give the pages the features under the pages' own words.

type people struct{ accounts *account.Service }

func (p people) SignUp(ctx context.Context, email, password string) (web.Account, error) {
	return webAccount(p.accounts.SignUp(ctx, email, password))
}

func (p people) SignIn(ctx context.Context, email, password string) (web.Account, error) {
	return webAccount(p.accounts.SignIn(ctx, email, password))
}

type browsers struct{ accounts *account.Service }

func (b browsers) Open(ctx context.Context, accountID string) (string, error) {
	return b.accounts.OpenSession(ctx, accountID)
}

func (b browsers) Find(ctx context.Context, value string) (web.Account, error) {
	return webAccount(b.accounts.FindSession(ctx, value))
}

func (b browsers) Close(ctx context.Context, value string) error {
	return b.accounts.CloseSession(ctx, value)
}

func webAccount(a account.Account, err error) (web.Account, error) {
	switch {
	case errors.Is(err, account.ErrEmailTaken):
		err = web.ErrEmailTaken
	case errors.Is(err, account.ErrBadCredentials), errors.Is(err, account.ErrSuspended):
		err = web.ErrBadCredentials
	case errors.Is(err, account.ErrNoSession):
		err = web.ErrNoSession
	}
	return web.Account{ID: a.ID, Email: a.Email}, err
}

type requests struct{ links *link.Service }

func (r requests) Pending(ctx context.Context, userCode string) (web.LinkRequest, error) {
	code, err := r.links.View(ctx, userCode)
	if err != nil {
		return web.LinkRequest{}, webLink(err)
	}
	shown, _ := link.NormalizeUserCode(userCode)
	who := code.Requester
	return web.LinkRequest{UserCode: shown, Host: who.Host, OS: who.OS, Client: who.Client, IP: who.IP,
		RequestedAt: code.CreatedAt, ExpiresAt: code.ExpiresAt}, nil
}

func (r requests) Approve(ctx context.Context, userCode, accountID string) error {
	return webLink(r.links.Approve(ctx, userCode, accountID))
}

func (r requests) Deny(ctx context.Context, userCode string) error {
	return webLink(r.links.Deny(ctx, userCode))
}

func webLink(err error) error {
	if errors.Is(err, link.ErrUnknown) || errors.Is(err, link.ErrNotPending) {
		return web.ErrNoCode
	}
	return err
}
