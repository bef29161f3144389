package usage

import (
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/gateway/wire"
)

const (
	fixRequest = "the app's request is wrong: its answer names the field"
	waitABit   = "the app repeats the call after the seconds of Retry-After"
)

// nextSteps tell owners and agents what to do about refusals.
var nextSteps = map[string]string{
	wire.InvalidJSON:            fixRequest,
	wire.InvalidValue:           fixRequest,
	wire.UnsupportedParameter:   "the app's request has a field that the gateway does not pass on: leave it out",
	gateway.CodeModelNotFound:   "the app names a model that is not offered: see models, or ask for assistant",
	gateway.CodeWrongAPI:        "the model has another interface than the app called: see models",
	gateway.CodeRequestTooLarge: "the credit covers a shorter answer only: lower max_tokens, shorten the input or top up",
	gateway.CodeNoCredit:        "the owner tops up the credit at /account/credit; local models cost nothing",
	gateway.CodeCreditReserved:  waitABit + ": other calls hold the credit until they end",
	gateway.CodeCreditLocked:    "the owner confirms the account's mail address on the settings page",
	gateway.CodeCapReached:      "the owner raises the cap on the project's gateway page, or waits until it resets",
	gateway.CodeOwnKeyMissing: "own keys pay, and there is none for the model's provider: call setCredential, or the owner " +
		"lets credit pay on the project's gateway page",
	gateway.CodeOwnKeyRefused:       "the provider refused the project's own key: call setCredential to replace it",
	gateway.CodeProviderUnreachable: "start the local model server",
	gateway.CodeTooManyCalls:        waitABit,
	gateway.CodeNotConfigured:       "the operator of the backend sets gateway_catalogue",
	gateway.CodeUnavailable:         waitABit,
}

// next returns the next step for a refusal.
func next(code string) string {
	if step, ok := nextSteps[code]; ok {
		return step
	}
	return "the app's answer says why"
}
