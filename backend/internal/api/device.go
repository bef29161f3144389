package api

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/proto/backendapi"
)

// issueCode is POST /api/auth/device/code.
func (a *API) issueCode(c *call) (any, error) {
	var body backendapi.DeviceCodeRequest
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if body.Scope != backendapi.ScopeAccountFull {
		return nil, refusal(backendapi.CodeInvalidRequest, "scope must be "+backendapi.ScopeAccountFull, `send {"scope":"account_full"}`)
	}
	return a.startCode(c.Request)
}

// startCode issues a code to the requester that the headers describe. The install id is not kept.
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

// guessesPerMinute is how many codes that nobody knows one address may ask for before its polls have to queue.
const guessesPerMinute = 60

// poll asks the machine. Who asked for too many unknown codes gets the same answers as before, known codes behind the
// same address among them, but waits for them in a lane of its address, so that guessing takes nothing from others.
func (a *API) poll(c *call, deviceCode string) (link.Poll, error) {
	ip := a.ClientIP(c.Request)
	ctx := link.WithAddress(c.Context(), ip)
	if a.guesses.Spent(ip) {
		leave, err := a.aside.enter(ctx, ip)
		if err != nil {
			return link.Poll{}, err
		}
		defer leave()
	}
	poll, err := a.Links.Poll(ctx, deviceCode)
	if errors.Is(err, link.ErrUnknown) && a.guesses.Take(ip) > 0 {
		a.Links.Throttled(ctx)
	}
	return poll, err
}

// pollToken is POST /api/auth/device/token.
func (a *API) pollToken(c *call) (any, error) {
	var body backendapi.TokenRequest
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if body.DeviceCode == "" {
		return nil, refusal(backendapi.CodeInvalidRequest, "deviceCode is missing", "send the deviceCode that "+backendapi.PathDeviceCode+" answered")
	}
	poll, err := a.poll(c, body.DeviceCode)
	if err != nil {
		return nil, err
	}
	if poll.Token == nil {
		return backendapi.Pending{Pending: true, PollIntervalSeconds: int64(poll.Interval.Seconds())}, nil
	}
	return backendapi.Token{AuthToken: poll.Token.AuthToken, Account: accountOf(poll.Token.Principal)}, nil
}
