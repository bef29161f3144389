package app

import (
	"context"
	"errors"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
)

// verifyTimeout bounds the question to the backend whether it honours the token.
const verifyTimeout = 12 * time.Second

// maxReplaced is how often a link that was replaced while the backend was asked about it is asked about again.
const maxReplaced = 2

// verify asks the caller's backend about the link and keeps its word. When it cannot be asked, the kept word stays as it
// was and only the returned link says so.
func (p *parts) verify(ctx context.Context, who caller.Caller) account.Link {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	l := p.verifyOnce(ctx, who)
	for range maxReplaced {
		if !l.Linked() || l.Verified != (account.Verdict{}) {
			break
		}
		l = p.verifyOnce(ctx, who) // another program wrote auth.json meanwhile: nobody asked about this link yet
	}
	return l
}

func (p *parts) verifyOnce(ctx context.Context, who caller.Caller) account.Link {
	target, l, err := p.link.Target(ctx, who)
	if err == nil && target.Bearer == "" {
		return l
	}
	if err == nil {
		_, err = p.backends.Account(ctx, target)
	}
	var problem *backend.Problem
	switch {
	case err == nil:
		p.accounts.SetVerified(target.Bearer, account.Verdict{At: p.now(), OK: true})
	case errors.As(err, &problem) && problem.Code == backend.CodeAuthRequired:
		p.accounts.MarkRevoked(target.Bearer)
	default:
		l.Verified.OK, l.Verified.Err = false, err.Error()
		return l
	}
	return p.accounts.For(target.BaseURL)
}
