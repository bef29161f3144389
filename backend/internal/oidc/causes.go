package oidc

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// errorCodes are OAuth 2.0 error codes (RFC 6749, sections 4.1.2.1 and 5.2) that indicate a wrong setting, here or at
// the provider.
var errorCodes = []string{"invalid_request", "invalid_client", "invalid_grant", "invalid_scope", "unauthorized_client",
	"unsupported_grant_type", "unsupported_response_type"}

// codeError is an error with one of the errorCodes.
type codeError struct {
	error
	code string
}

func (e *codeError) Error() string { return e.error.Error() + ": " + e.code }
func (e *codeError) Unwrap() error { return e.error }

// withCode adds a provider's error code to err if the code is known. It drops all other text, which an attacker could
// have chosen.
func withCode(err error, code string) error {
	if !slices.Contains(errorCodes, code) {
		return err
	}
	return &codeError{err, code}
}

// HasErrorCode reports whether err contains an error code that indicates a wrong setting.
func HasErrorCode(err error) bool {
	var with *codeError
	return errors.As(err, &with)
}

// exchangeError distinguishes an unreachable token endpoint from one that refuses, without quoting the response.
func exchangeError(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) || refused.Response == nil {
		return unreachable(err)
	}
	if code := refused.Response.StatusCode; code >= 500 {
		return fmt.Errorf("%w: the token endpoint answered with %s", ErrUnreachable, statusText(code))
	}
	return withCode(fmt.Errorf("%w: the code was refused", ErrInvalidAnswer), refused.ErrorCode)
}

// statusText returns an HTTP status without the reason phrase that the server sent.
func statusText(code int) string {
	return strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
}

// discoveryError returns an ErrUnreachable with the reason why a provider could not be discovered.
func discoveryError(err error) error {
	var other *gooidc.IssuerMismatchError
	if errors.As(err, &other) {
		return fmt.Errorf("%w: its discovery document has the issuer %.200q, which the setting issuer must equal",
			ErrUnreachable, other.Discovered)
	}
	text := err.Error() // the library reports these causes only as text, followed by the whole answer
	if len(text) > 3 && (text[3] == ' ' || text[3] == ':') {
		if code, err := strconv.Atoi(text[:3]); err == nil && code >= 100 {
			return fmt.Errorf("%w: discovery answered with %s", ErrUnreachable, statusText(code))
		}
	}
	if strings.HasPrefix(text, "oidc: failed to decode provider discovery object") {
		return fmt.Errorf("%w: the discovery document is not JSON", ErrUnreachable)
	}
	return unreachable(err)
}

// maxCause limits the text of a failed connection, in bytes. It may quote names in the other side's certificate.
const maxCause = 200

// unreachable returns an ErrUnreachable with the cause of a failed connection. It omits other causes, which may quote a
// response.
func unreachable(err error) error {
	var operation *net.OpError
	var lookup *net.DNSError
	var certificate *tls.CertificateVerificationError // contains every x509 error of a connection
	var timeout interface{ Timeout() bool }
	var cause error
	switch {
	case errors.Is(err, errPlain):
		return fmt.Errorf("%w: %w", ErrUnreachable, errPlain)
	case errors.As(err, &operation):
		cause = operation
	case errors.As(err, &lookup):
		cause = lookup
	case errors.As(err, &certificate):
		cause = certificate
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%w: no answer in time", ErrUnreachable)
	default:
		return ErrUnreachable
	}
	text := cause.Error()
	return fmt.Errorf("%w: %s", ErrUnreachable, strings.ToValidUTF8(text[:min(len(text), maxCause)], ""))
}
