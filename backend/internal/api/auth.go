package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/service-dev/service/backend/internal/httpjson"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// authenticate checks the caller of a route that needs a linked account. It requires a bearer token. It responds
// with 401 and a new device code to an invalid token or a bare install ID, and with 400 to any other request. If ok
// is false, authenticate has written the response.
func (a *API) authenticate(w http.ResponseWriter, r *http.Request) (who link.Principal, ok bool) {
	install := r.Header.Get(backendapi.HeaderInstallID)
	authorization := r.Header.Get("Authorization")
	const oneOf = "send " + backendapi.HeaderInstallID + " when not linked, Authorization when linked"
	switch {
	case install != "" && authorization != "":
		a.fail(w, r, invalidRequest("the request contains both an install id and a bearer token", oneOf))
		return who, false
	case authorization == "" && !validInstallID(install):
		a.fail(w, r, invalidRequest("the request contains neither a valid install id nor a bearer token", oneOf))
		return who, false
	case authorization == "":
		a.authRequired(w, r, "this request needs a linked account")
		return who, false
	}
	token, isBearer := httpjson.Bearer(authorization)
	if !isBearer {
		a.fail(w, r, invalidRequest("Authorization must have the form Bearer <token>", "Send the token in auth.json."))
		return who, false
	}
	who, err := a.Links.Authenticate(link.WithAddress(r.Context(), a.ClientIP(r)), token)
	if err != nil {
		a.invalidToken(w, r, err)
		return who, false
	}
	return who, true
}

func (a *API) invalidToken(w http.ResponseWriter, r *http.Request, err error) {
	var detail string
	switch {
	case errors.Is(err, link.ErrRevoked):
		detail = "this install's link was revoked"
		if a.SupportContact != "" {
			detail += "; questions go to " + a.SupportContact
		}
	case errors.Is(err, link.ErrTokenExpired):
		detail = "this install's token has expired"
	case errors.Is(err, link.ErrUnknown):
		detail = "this backend does not know the token"
	default:
		a.fail(w, r, err)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
	a.authRequired(w, r, detail)
}

// authRequired responds with 401 and everything that the client needs to link.
func (a *API) authRequired(w http.ResponseWriter, r *http.Request, detail string) {
	code, err := a.startCode(r)
	var limited *problem.Error
	if errors.As(err, &limited) && w.Header().Get("WWW-Authenticate") != "" {
		// Tell the client that its token is invalid even if its address may not request more codes at the moment.
		w.Header().Set("Retry-After", strconv.Itoa(seconds(limited.RetryAfter)))
		a.fail(w, r, problem.New(problem.CodeAuthRequired, detail,
			"Wait for the time in Retry-After, request a device code and link again."))
		return
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	p := bodyOf(problem.New(problem.CodeAuthRequired, detail,
		"Show the user both the user code and the verification URL, "+
			"ask them to check that the page shows the same code, then poll with deviceCode."))
	w.Header().Set("Content-Type", "application/problem+json")
	a.answer(w, p.Status, backendapi.AuthRequired{Problem: p, DeviceCode: code})
}

// validInstallID reports whether s has the form inst_<suffix>.
func validInstallID(s string) bool {
	suffix, ok := strings.CutPrefix(s, "inst_")
	if !ok || len(suffix) < 4 || len(suffix) > 64 {
		return false
	}
	for i := range len(suffix) {
		c := suffix[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
