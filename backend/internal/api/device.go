package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/proto/backendapi"
)

// issueCode serves POST /api/auth/device/code.
func (a *API) issueCode(c *call, body backendapi.DeviceCodeRequest) (any, error) {
	if body.Scope != backendapi.ScopeAccountFull {
		return nil, invalidRequest("scope must be "+backendapi.ScopeAccountFull, `Send {"scope":"account_full"}.`)
	}
	return a.startCode(c.Request)
}

// startCode issues a code to the requester described by the request headers. It does not store the install ID.
func (a *API) startCode(r *http.Request) (backendapi.DeviceCode, error) {
	ip := a.ClientIP(r)
	if wait := a.codes.Take(ip); wait > 0 {
		a.Links.Throttled(link.WithAddress(r.Context(), ip))
		return backendapi.DeviceCode{}, tooMany(wait)
	}
	issued, err := a.Links.Start(r.Context(), link.Requester{
		Host: clip(r.Header.Get(backendapi.HeaderHost), 100), OS: clip(r.Header.Get(backendapi.HeaderOS), 100),
		Client: clip(r.Header.Get(backendapi.HeaderClient), 100), IP: ip,
	})
	if err != nil {
		return backendapi.DeviceCode{}, err
	}
	return backendapi.DeviceCode{
		DeviceCode: issued.DeviceCode, UserCode: issued.UserCode,
		VerificationURL:     a.SiteURL + "/activate?code=" + url.QueryEscape(issued.UserCode),
		ExpiresInSeconds:    int64(issued.ExpiresIn.Seconds()),
		PollIntervalSeconds: int64(issued.PollInterval.Seconds()),
	}, nil
}

// guessesPerMinute is how many unknown codes one address may poll per minute before its polls are queued.
const guessesPerMinute = 60

// guessBounds limits each address to a small part of the total.
var guessBounds = limit.Bounds{Running: 16, RunningEach: 2, Waiting: 1024, WaitingEach: 64}

// withCode calls ask with the code in the request. Once an address has polled too many unknown codes, all of its
// later calls wait in its own queue, so that guessing does not slow down others.
func withCode[T any](
	a *API, c *call, body backendapi.TokenRequest, ask func(ctx context.Context, deviceCode string) (T, error),
) (answer T, err error) {
	if body.DeviceCode == "" {
		return answer, invalidRequest("deviceCode is missing",
			"Send the deviceCode that "+backendapi.PathDeviceCode+" returned.")
	}
	ip := a.ClientIP(c.Request)
	ctx := link.WithAddress(c.Context(), ip)
	if a.guesses.Spent(ip) {
		leave, err := a.guessQueue.Enter(ctx, limit.Caller(ip))
		if errors.Is(err, limit.ErrFull) {
			return answer, tooMany(time.Second)
		}
		if err != nil {
			return answer, err
		}
		defer leave()
	}
	answer, err = ask(ctx, body.DeviceCode)
	if errors.Is(err, link.ErrUnknown) && a.guesses.Take(ip) > 0 {
		a.Links.Throttled(ctx)
	}
	return answer, err
}

// pollToken serves POST /api/auth/device/token.
func (a *API) pollToken(c *call, body backendapi.TokenRequest) (any, error) {
	poll, err := withCode(a, c, body, a.Links.Poll)
	if err != nil {
		return nil, err
	}
	if poll.Token == nil {
		return backendapi.Pending{Pending: true, PollIntervalSeconds: int64(poll.Interval.Seconds())}, nil
	}
	return backendapi.Token{AuthToken: poll.Token.AuthToken, Account: accountOf(poll.Token.Principal)}, nil
}

// cancelCode serves POST /api/auth/device/cancel.
func (a *API) cancelCode(c *call, body backendapi.TokenRequest) (any, error) {
	c.status = http.StatusNoContent
	return withCode(a, c, body, func(ctx context.Context, deviceCode string) (any, error) {
		return nil, a.Links.Cancel(ctx, deviceCode)
	})
}
