package gateway

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/internal/problem"
)

// ForwardedHeader is sent to servers that users added. A gateway refuses calls with this header, because a server
// that a user added may be the gateway itself, which would then call itself endlessly.
const ForwardedHeader = "Service-Gateway"

// Forwarded returns the refusal of a call with ForwardedHeader.
func Forwarded() *Refusal {
	return Refuse(problem.CodeForwarded,
		"an AI gateway called this one: add the server behind it as a local server instead")
}

// Problem is the part of a Refusal that all errors have.
type Problem = problem.Error

// Refusal contains the reason why a call got no answer. Its cause is not revealed to apps.
type Refusal struct {
	Problem
	Param string // the invalid field of the request, if there is one
	// Money maps names to the amounts that explain the refusal, in micro-USD or tokens, and to the top-up page or the
	// reason.
	Money map[string]any
}

// Unwrap returns the problem.
func (e *Refusal) Unwrap() error { return &e.Problem }

// Refuse returns a refusal.
func Refuse(code, message string) *Refusal {
	return &Refusal{Problem: *problem.New(code, message, "")}
}

// After sets the time after which the app may try again.
func (e *Refusal) After(wait time.Duration) *Refusal {
	e.RetryAfter = wait
	return e
}

// At sets the invalid field of the request.
func (e *Refusal) At(param string) *Refusal {
	e.Param = param
	return e
}

// Because sets the member reason of the error: one word for programs.
func (e *Refusal) Because(reason string) *Refusal { return e.with(map[string]any{"reason": reason}) }

func (e *Refusal) with(money map[string]any) *Refusal {
	e.Money = money
	return e
}

// outcome returns the outcome to record for a call that was not served by its provider. The outcome is the refusal's
// code if the account's owner can act on it.
func (e *Refusal) outcome() string {
	if e.Code == problem.CodeOwnKeyRefused || e.Code == problem.CodeProviderUnreachable {
		return e.Code
	}
	return outcomeFailed
}

// noCredit returns the extra fields of a no_credit refusal: the amounts needed and available and, if known, the
// page for adding credit.
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
	return Refuse(problem.CodeCapReached, what+": its owner can raise it or wait until it "+
		"resets").with(money)
}

// attestationRequired returns the refusal of a call by the daily allowance of project keys. covered and coveredLater
// are the lengths of an answer, in tokens, that the rest of the allowance and the allowance of a whole day cover.
func attestationRequired(e *credit.AttestationRequired, covered, coveredLater int64) *Refusal {
	const reset = "the allowance resets at 00:00 UTC"
	what := "today's allowance of this project for calls with a project key "
	options := []string{"attest the install at POST /v1/attest/challenge and use the token"}
	switch {
	case e.Needed > e.Limit:
		what = fmt.Sprintf("this call can cost %s USD, and the daily allowance of this project for calls with a project key "+
			"is %s USD", e.Needed, e.Limit)
	case e.Used < e.Limit:
		what = "the rest of " + what + "does not cover this call"
	default:
		what += "is used"
	}
	money := map[string]any{"needed": e.Needed, "limit": e.Limit, "used": e.Used,
		"resetsAt": e.ResetsAt.UTC().Format(time.RFC3339)}
	if covered > 0 {
		money["affordableOutputTokens"] = covered
		options = append(options, fmt.Sprintf("request at most %d output tokens", covered))
	}
	switch {
	case e.Needed <= e.Limit:
		options = append(options, "wait: "+reset)
	case covered <= 0 && coveredLater > 0:
		options = append(options, fmt.Sprintf("request at most %d output tokens when %s", coveredLater, reset))
	}
	if last := len(options) - 1; last > 0 {
		options[last] = "or " + options[last]
	}
	return Refuse(problem.CodeAttestationRequired, what+": "+strings.Join(options, ", ")+
		"; the project's owner can raise the allowance").with(money)
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
		required *credit.AttestationRequired
	)
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &field):
		return Refuse(field.Code, field.Message).At(field.Param)
	case errors.As(err, &none):
		return Refuse(problem.CodeNoCredit,
			"the account has too little credit for this call: its owner can see the balance on the account's page").
			with(noCredit(none))
	case errors.As(err, &reserved):
		of := "account's credit"
		switch reserved.Cap {
		case "":
		case credit.CapKeys:
			of = "project's allowance of today for project keys"
		default:
			of = reserved.Of + "'s spending cap of this " + reserved.Cap
		}
		return Refuse(problem.CodeCreditReserved,
			"what is left of the "+of+" is reserved for calls in flight: try again when they have ended").
			After(retryReserved).with(map[string]any{"needed": reserved.Needed, "available": reserved.Available})
	case errors.As(err, &unproved):
		return Refuse(problem.CodeCreditLocked,
			"the account's owner has to confirm the e-mail address before credit can be spent")
	case errors.As(err, &capped):
		return capReached(capped, 0)
	case errors.As(err, &required):
		return attestationRequired(required, 0, 0)
	}
	refusal = Refuse(problem.CodeUnavailable, "the gateway cannot serve now: try again").After(time.Second)
	refusal.Err = err
	return refusal
}
