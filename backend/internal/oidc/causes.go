package oidc

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// errorCodes are the codes of OAuth 2.0 (RFC 6749, sections 4.1.2.1 and 5.2) that point to a wrong setting, here or at
// the provider.
var errorCodes = []string{"invalid_request", "invalid_client", "invalid_grant", "invalid_scope", "unauthorized_client",
	"unsupported_grant_type", "unsupported_response_type"}

// withCode adds a provider's error code to err if it is known. Other text may come from anybody, and is dropped.
func withCode(err error, code string) error {
	if !slices.Contains(errorCodes, code) {
		return err
	}
	return fmt.Errorf("%w: %s", err, code)
}

// exchangeError distinguishes an unreachable token endpoint from one that refuses, without quoting the response.
func exchangeError(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) || refused.Response == nil {
		return unreachable(err)
	}
	if refused.Response.StatusCode >= 500 {
		return fmt.Errorf("%w: the token endpoint answered with %s", ErrUnreachable, refused.Response.Status)
	}
	return withCode(fmt.Errorf("%w: the code was refused", ErrInvalidAnswer), refused.ErrorCode)
}

// discoveryError returns an ErrUnreachable that says why a provider could not be discovered.
func discoveryError(err error) error {
	var other *gooidc.IssuerMismatchError
	if errors.As(err, &other) {
		return fmt.Errorf("%w: its discovery document calls itself %.200q, which the setting issuer must equal",
			ErrUnreachable, other.Discovered)
	}
	status, _, _ := strings.Cut(err.Error(), ": ") // followed by the whole answer
	if len(status) > 3 && len(status) < 60 && strings.Trim(status[:3], "0123456789") == "" {
		return fmt.Errorf("%w: discovery answered with %s", ErrUnreachable, status)
	}
	return unreachable(err)
}

// unreachable returns an ErrUnreachable with the cause of a failed connection. It leaves out other causes, which may
// quote a response.
func unreachable(err error) error {
	var failed *url.Error
	switch {
	case errors.Is(err, errPlain):
		return fmt.Errorf("%w: %w", ErrUnreachable, errPlain)
	case errors.As(err, &failed):
		return fmt.Errorf("%w: %w", ErrUnreachable, failed.Err)
	}
	return ErrUnreachable
}
