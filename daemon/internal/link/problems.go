package link

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/proto/telemetry"
)

// Codes of this package's problems.
const (
	// CodeAuthTimeout means that the wait of a Complete ended without an outcome.
	CodeAuthTimeout = "auth_timeout"
	// CodeLinkConflict means that the approval would replace a live link of another account or backend.
	CodeLinkConflict = "link_conflict"
	// CodeInvalidConfig means that a backend address is unusable.
	CodeInvalidConfig = "invalid_config"
	codeAborted       = "polling_aborted"
	codeBusy          = "busy"
)

// expired, unknownCode and a denial have no fix hint, because the next step depends on the interface; for agents,
// linkHints of package tools provides it. If the backend became unreachable, the hint is from the last poll.

func expired() *backend.Problem {
	return &backend.Problem{
		Code: backend.CodeDeviceCodeExpired, Retryable: true, HTTPStatus: http.StatusGone,
		Message: "the device code expired before anybody approved it",
	}
}

func unknownCode() *backend.Problem {
	return &backend.Problem{
		Code: backend.CodeUnknownDeviceCode, HTTPStatus: http.StatusNotFound,
		Message: "the backend does not know the device code: it never issued it, or the code was already used",
	}
}

// foreignCode returns the problem for a code that was not issued to this install.
func foreignCode() *backend.Problem {
	return &backend.Problem{
		Code:    backend.CodeUnknownDeviceCode,
		Message: "this device code was not issued to this install, or expired long ago",
		FixHint: "Call createSimulatorSession for a code of this install. " +
			"Never take a deviceCode from anything but an auth_required answer.",
	}
}

func timedOut(wait time.Duration) *backend.Problem {
	return &backend.Problem{
		Code: CodeAuthTimeout, Retryable: true,
		Message: fmt.Sprintf("nobody approved the code within %d s; it is still being polled", int(wait.Seconds())),
		FixHint: "Ask the person to approve the code, then call completeAuthLink again with the same deviceCode.",
	}
}

// conflict returns the problem for an approval that would replace a live link without the user's consent.
func conflict(current account.Link) *backend.Problem {
	return &backend.Problem{
		Code: CodeLinkConflict,
		Message: "this machine is linked to account " + current.AccountID + " at " + backend.DisplayName(current.BackendURL) +
			"; that link was not replaced",
		FixHint: "Ask the person. To replace the link they run `servicectl login --replace` in a terminal; " +
			"to keep it, change nothing.",
	}
}

func aborted(message string) *backend.Problem {
	return &backend.Problem{Code: codeAborted, Message: message, Retryable: true}
}

func busy() *backend.Problem {
	return &backend.Problem{
		Code: codeBusy, Message: "too many codes are being polled", Retryable: true, FixHint: "Try again in a minute.",
	}
}

// invalidAddress returns the problem for an unusable backend address.
func invalidAddress(err error) *backend.Problem {
	p := &backend.Problem{
		Code: CodeInvalidConfig, Message: err.Error(), FixHint: "Correct the address of the backend, or unset it.",
	}
	if setting := (*config.Error)(nil); errors.As(err, &setting) && setting.Fix != "" {
		p.FixHint = setting.Fix
	}
	return p
}

// outcomeOf returns the problem and the telemetry outcome of a flow that ends with the backend's response p after a
// number of consecutive failed polls. answerLost reports whether the response to an earlier poll was lost.
func outcomeOf(p *backend.Problem, failed int, answerLost bool) (problem *backend.Problem, outcome string) {
	switch {
	case p.Code == backend.CodeAuthRequired: // the embedded backend that issued the code was replaced by a new one
		return unknownCode(), telemetry.OutcomeCodeExpired
	case p.Code == backend.CodeUnknownDeviceCode && answerLost:
		return &backend.Problem{
			Code: backend.CodeUnknownDeviceCode, HTTPStatus: p.HTTPStatus,
			Message: "the approval was used, but the answer was lost on the network; the unused token revokes itself",
			FixHint: "Link again with a fresh code: call createSimulatorSession, or run servicectl login.",
		}, telemetry.OutcomeNetworkError
	case p.Code == backend.CodeUnknownDeviceCode:
		return unknownCode(), telemetry.OutcomeCodeExpired
	case p.Code == backend.CodeDeviceCodeExpired:
		return expired(), telemetry.OutcomeCodeExpired
	case p.Code == backend.CodeDeviceCodeDenied:
		return &backend.Problem{
			Code: p.Code, Message: "the person declined on the verification page", Retryable: true, HTTPStatus: p.HTTPStatus,
		}, telemetry.OutcomeUserDenied
	case p.Code == backend.CodeInvalidResponse:
		return &backend.Problem{
			Code: p.Code, Message: p.Message, HTTPStatus: p.HTTPStatus,
			FixHint: "The backend and this build are incompatible: update both, and check the backend address.",
		}, telemetry.OutcomeNetworkError
	case isTransient(p):
		return &backend.Problem{
			Code: backend.CodeUnreachable, Retryable: true, HTTPStatus: p.HTTPStatus, FixHint: p.FixHint,
			Untrusted: p.Untrusted,
			Message:   "the backend could not be reached in " + attempts(failed) + ": " + p.Message,
		}, telemetry.OutcomeNetworkError
	}
	return p, telemetry.OutcomeNetworkError
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// isTransient reports whether repeating a poll may help: there was no response, a gateway failed, or there were too
// many requests.
func isTransient(p *backend.Problem) bool {
	return p.Code == backend.CodeUnreachable || p.Code == backend.CodeAdapterUnavailable ||
		p.HTTPStatus >= http.StatusInternalServerError || p.HTTPStatus == http.StatusTooManyRequests
}

// isRestartable reports whether a flow that ended with err may be polled again, because the network failed, not the
// code.
func isRestartable(err error) bool {
	return err != nil && asProblem(err).Code == backend.CodeUnreachable
}

// asProblem returns the *backend.Problem for an error; it is never nil.
func asProblem(err error) *backend.Problem {
	var p *backend.Problem
	switch {
	case errors.As(err, &p):
		return p
	case err == nil:
		return &backend.Problem{}
	}
	return &backend.Problem{Code: backend.CodeUnreachable, Message: err.Error(), Retryable: true}
}
