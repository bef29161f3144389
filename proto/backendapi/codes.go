package backendapi

import (
	"net/http"
	"slices"
)

// CodeInfo describes a code of a Problem.
type CodeInfo struct {
	Code   string
	Status int
	// Title is the title of the Problem.
	Title string
	// Retryable reports whether the same request may succeed later.
	Retryable bool
	// Meaning explains when a backend returns the code, for the documentation.
	Meaning string
}

// Codes returns every code of a Problem, ordered by status. Backends use these statuses and titles, and the
// documentation lists them.
func Codes() []CodeInfo { return slices.Clone(codes) }

var codes = []CodeInfo{
	{CodeInvalidRequest, http.StatusBadRequest, "Invalid request", false,
		"a header, parameter or field is missing, unknown, repeated or out of bounds; `detail` names it"},
	{CodeAuthRequired, http.StatusUnauthorized, "Account link required", true,
		"the install is not linked, or its token is unknown, expired or revoked; the body contains a new device code"},
	{CodeInvalidKey, http.StatusUnauthorized, "Unknown project key", false,
		"the project key is missing, unknown or revoked, or its project is deleted"},
	{CodeDeviceCodeDenied, http.StatusForbidden, "Device code denied", true,
		"the person declined, the client cancelled the code, or the account that approved is suspended"},
	{CodePermissionDenied, http.StatusForbidden, "Permission denied", false,
		"the account's owner does not grant this to agents"},
	{CodeUnknownDeviceCode, http.StatusNotFound, "Unknown device code", false,
		"the device code was never issued, or its token was already issued"},
	{CodeNotFound, http.StatusNotFound, "Not found", false,
		"there is no such route, session, project or provider, or it belongs to another account"},
	{CodeMethodNotAllowed, http.StatusMethodNotAllowed, "Method not allowed", false,
		"the path supports only other methods; `Allow` lists them"},
	{CodeConflict, http.StatusConflict, "Conflict", false,
		"the session is closed, or the account has 500 projects"},
	{CodeVersionConflict, http.StatusConflict, "Version conflict", true,
		"the record was changed since you read it; `currentVersion` is its version now"},
	{CodeNotConfigured, http.StatusConflict, "Not configured", false,
		"the operator of this backend has not set this up"},
	{CodeNotConnected, http.StatusConflict, "Not connected", true,
		"no simulator page of the session is open"},
	{CodeTooManyKeys, http.StatusConflict, "Too many keys", false,
		"the project has 50 live keys"},
	{CodeDeviceCodeExpired, http.StatusGone, "Device code expired", true,
		"the device code has expired"},
	{CodeTooLarge, http.StatusRequestEntityTooLarge, "Request too large", false,
		"the body is over the limit of its route"},
	{CodeUnsupportedMedia, http.StatusUnsupportedMediaType, "Unsupported media type", false,
		"the body is not `application/json`, or its encoding is not gzip"},
	{CodeRateLimited, http.StatusTooManyRequests, "Too many requests", true,
		"a limit is exhausted; wait the seconds in `Retry-After`"},
	{CodeInternal, http.StatusInternalServerError, "Internal error", true,
		"the backend failed; its log contains the cause"},
	{CodeUnavailable, http.StatusServiceUnavailable, "Unavailable", true,
		"the backend stores its maximum of usage events; wait the seconds in `Retry-After`"},
	{CodeTimeout, http.StatusGatewayTimeout, "Timeout", true,
		"the simulator page did not answer in 10 seconds"},
}
