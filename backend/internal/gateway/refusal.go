package gateway

import (
	"errors"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway/wire"
)

// Codes of a Refusal. A Refusal may also have a code of package wire or credit.
const (
	CodeInvalidKey          = "invalid_key"
	CodeModelNotFound       = "model_not_found"
	CodeWrongAPI            = "wrong_api"
	CodeRequestTooLarge     = "request_too_large"
	CodeNoCredit            = "no_credit"
	CodeCreditReserved      = "credit_reserved"
	CodeCreditLocked        = "credit_locked"
	CodeCapReached          = "cap_reached"
	CodeTooManyCalls        = "too_many_calls"
	CodeNotConfigured       = "not_configured"
	CodeUnavailable         = "unavailable"
	CodeOwnKeyMissing       = "own_key_missing"
	CodeOwnKeyRefused       = "own_key_refused"
	CodeProviderBusy        = "provider_busy"
	CodeProviderTimeout     = "provider_timeout"
	CodeProviderUnavailable = "provider_unavailable"
	CodeProviderUnreachable = "provider_unreachable"
	CodeProviderRefused     = "provider_refused"
	CodeProviderError       = "provider_error"
	CodeForwarded           = "forwarded_call"
)

// ForwardedHeader is sent to servers that users added. A gateway refuses calls with this header: such a server may be
// the gateway itself, which would then call itself endlessly.
const ForwardedHeader = "Service-Gateway"

// Forwarded returns the refusal of a call with ForwardedHeader.
func Forwarded() *Refusal {
	return refuse(CodeForwarded, "an AI gateway called this one: add the server behind it as a local server instead")
}

// Refusal contains the reason why a call got no answer, and what to do next.
type Refusal struct {
	Code, Message string
	Param         string        // the invalid field of the request, if there is one
	RetryAfter    time.Duration // 0 if waiting does not help
	// Money maps names to the amounts that explain the refusal, in micro-USD or tokens, and to the top-up page.
	Money map[string]any

	cause error
}

// Error returns the message.
func (e *Refusal) Error() string { return e.Message }

// Unwrap returns the cause, which is not revealed to apps.
func (e *Refusal) Unwrap() error { return e.cause }

// outcome returns the outcome to record for a call that was not served by its provider. It is the refusal's code if the
// account's owner can act on it.
func (e *Refusal) outcome() string {
	if e.Code == CodeOwnKeyRefused || e.Code == CodeProviderUnreachable {
		return e.Code
	}
	return outcomeFailed
}

func refuse(code, message string) *Refusal { return &Refusal{Code: code, Message: message} }

// noCredit returns the amounts of a call that the credit does not cover, and the page where the owner adds credit.
func noCredit(e *credit.NoCredit) map[string]any {
	money := map[string]any{"needed": e.Needed, "available": e.Available}
	if e.TopUp != "" {
		money["topUp"] = e.TopUp
	}
	return money
}

// capReached returns the refusal of a call by a cap. covered is the length of an answer, in tokens, that the remainder
// of the cap covers.
func capReached(e *credit.CapReached, covered int64) *Refusal {
	what := "the " + e.Of + "'s spending cap of this " + e.Cap
	if e.Used < e.Limit {
		what = "the rest of " + what + " does not cover this call"
	} else {
		what += " is reached"
	}
	money := map[string]any{"cap": e.Cap, "of": e.Of, "limit": e.Limit, "resetsAt": e.ResetsAt.UTC().Format(time.RFC3339)}
	if covered > 0 {
		money["affordableOutputTokens"] = covered
	}
	return &Refusal{Code: CodeCapReached, Money: money, Message: what + ": its owner can raise it or wait until it " +
		"resets"}
}

// retryReserved is the time after which credit held by other calls may be available again.
const retryReserved = 2 * time.Second

// refusalOf converts an error from holding credit or from decoding to a Refusal.
func refusalOf(err error) *Refusal {
	var (
		refusal  *Refusal
		field    *wire.FieldError
		none     *credit.NoCredit
		reserved *credit.Reserved
		unproved *credit.Unproved
		capped   *credit.CapReached
	)
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &field):
		return &Refusal{Code: field.Code, Message: field.Message, Param: field.Param}
	case errors.As(err, &none):
		return &Refusal{Code: CodeNoCredit,
			Message: "the account has too little credit for this call: its owner can see the balance on the account's page",
			Money:   noCredit(none)}
	case errors.As(err, &reserved):
		of := "account's credit"
		if reserved.Cap != "" {
			of = reserved.Of + "'s spending cap of this " + reserved.Cap
		}
		return &Refusal{Code: CodeCreditReserved, RetryAfter: retryReserved,
			Message: "what is left of the " + of + " is reserved for calls in flight: try again when they have ended",
			Money:   map[string]any{"needed": reserved.Needed, "available": reserved.Available}}
	case errors.As(err, &unproved):
		return refuse(CodeCreditLocked, "the account's owner has to confirm the mail address before credit can be spent")
	case errors.As(err, &capped):
		return capReached(capped, 0)
	}
	return &Refusal{Code: CodeUnavailable, Message: "the gateway cannot serve now: try again",
		RetryAfter: time.Second,
		cause:      err}
}
