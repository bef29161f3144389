package api

import (
	"net/http"
	"net/url"

	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/proto/backendapi"
)

// issueCode is POST /api/auth/device/code (spec 4.1, 2.2).
func (a *API) issueCode(w http.ResponseWriter, r *http.Request) {
	var body backendapi.DeviceCodeRequest
	if err := decode(w, r, &body); err != nil {
		a.fail(w, r, err)
		return
	}
	if body.Scope != backendapi.ScopeAccountFull {
		a.fail(w, r, refusal(backendapi.CodeInvalidRequest, "scope must be "+backendapi.ScopeAccountFull, `send {"scope":"account_full"}`))
		return
	}
	code, err := a.startCode(r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.answer(w, http.StatusOK, code)
}

// startCode issues a code to the requester that the headers describe. The install id is not kept (design D18).
func (a *API) startCode(r *http.Request) (backendapi.DeviceCode, error) {
	ip := a.ClientIP(r)
	if wait := a.codes.Take(ip); wait > 0 {
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

// pollToken is POST /api/auth/device/token (spec 4.1, 2.3, 7.1).
func (a *API) pollToken(w http.ResponseWriter, r *http.Request) {
	var body backendapi.TokenRequest
	if err := decode(w, r, &body); err != nil {
		a.fail(w, r, err)
		return
	}
	if body.DeviceCode == "" {
		a.fail(w, r, refusal(backendapi.CodeInvalidRequest, "deviceCode is missing", "send the deviceCode that "+backendapi.PathDeviceCode+" answered"))
		return
	}
	poll, err := a.Links.Poll(r.Context(), body.DeviceCode)
	switch {
	case err != nil:
		a.fail(w, r, err)
	case poll.Token == nil:
		a.answer(w, http.StatusOK, backendapi.Pending{Pending: true, PollIntervalSeconds: int64(poll.Interval.Seconds())})
	default:
		a.answer(w, http.StatusOK, backendapi.Token{AuthToken: poll.Token.AuthToken, Account: accountOf(poll.Token.Principal)})
	}
}
