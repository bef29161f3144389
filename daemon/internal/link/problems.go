package link

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/telemetry"
)

// The problems of an expired, an unknown and a denied code have no fix hint, because the next step depends on the
// interface. For agents, the table of package problem contains the hints. If the backend became unreachable, the hint
// is the latest poll's.

func expired() *problem.Error {
	return &problem.Error{
		Code: problem.CodeDeviceCodeExpired, Retryable: true, HTTPStatus: http.StatusGone,
		Message: "the device code expired before it was approved",
	}
}

func unknownCode() *problem.Error {
	return &problem.Error{
		Code: problem.CodeUnknownDeviceCode, HTTPStatus: http.StatusNotFound,
		Message: "the backend does not know the device code: it never issued it, or the code was already used",
	}
}

// foreignCode returns the problem for a code that was not issued to this install.
func foreignCode() *problem.Error {
	return &problem.Error{
		Code:    problem.CodeUnknownDeviceCode,
		Message: "this device code was not issued to this install, or expired long ago",
		FixHint: "Call createSimulatorSession to get a code for this install. " +
			"Pass only a deviceCode from an auth_required result.",
	}
}

func timedOut(wait time.Duration) *problem.Error {
	return &problem.Error{
		Code: problem.CodeAuthTimeout, Retryable: true,
		Message: fmt.Sprintf("the code was not approved within %d s; it is still being polled", int(wait.Seconds())),
		FixHint: "Ask the user to approve the code, then call completeAuthLink again with the same deviceCode.",
	}
}

// conflict returns the problem for an approval that would replace a live link without the user's consent.
func conflict(current account.Link) *problem.Error {
	return &problem.Error{
		Code: problem.CodeLinkConflict,
		Message: "this machine is linked to account " + current.AccountID + " at " + backend.DisplayName(current.BackendURL) +
			"; that link was not replaced",
		FixHint: "Ask the user. To replace the link, they run `servicectl login --replace` in a terminal; " +
			"to keep it, change nothing.",
	}
}

func aborted(message string) *problem.Error {
	return &problem.Error{Code: problem.CodePollingAborted, Message: message, Retryable: true}
}

func busy() *problem.Error {
	return &problem.Error{
		Code: problem.CodeBusy, Message: "too many codes are being polled", Retryable: true,
		FixHint: "Try again in a minute.",
	}
}

// invalidAddress returns the problem for an unusable backend address.
func invalidAddress(err error) *problem.Error {
	if p := problem.From(err); p != nil {
		return p
	}
	return problem.New(problem.CodeInvalidConfig, err.Error(), "Correct the address of the backend, or unset it.")
}

// outcomeOf returns the problem and the telemetry outcome of a flow that ends because of the backend's response p.
// failed is the number of consecutive failed polls. answerLost reports whether the response to an earlier poll was
// lost.
func outcomeOf(p *problem.Error, failed int, answerLost bool) (*problem.Error, string) {
	switch {
	case p.Code == problem.CodeAuthRequired: // a new embedded backend replaced the one that issued the code
		return unknownCode(), telemetry.OutcomeCodeExpired
	case p.Code == problem.CodeUnknownDeviceCode && answerLost:
		return &problem.Error{
			Code: problem.CodeUnknownDeviceCode, HTTPStatus: p.HTTPStatus,
			Message: "the code was approved, but the response was lost on the network; the unused token revokes itself",
			FixHint: "Link again with a new code: call createSimulatorSession, or run servicectl login.",
		}, telemetry.OutcomeNetworkError
	case p.Code == problem.CodeUnknownDeviceCode:
		return unknownCode(), telemetry.OutcomeCodeExpired
	case p.Code == problem.CodeDeviceCodeExpired:
		return expired(), telemetry.OutcomeCodeExpired
	case p.Code == problem.CodeDeviceCodeDenied:
		return &problem.Error{
			Code: p.Code, Message: "the user declined on the verification page", Retryable: true, HTTPStatus: p.HTTPStatus,
		}, telemetry.OutcomeUserDenied
	case p.Code == problem.CodeInvalidResponse:
		return &problem.Error{
			Code: p.Code, Message: p.Message, HTTPStatus: p.HTTPStatus,
			FixHint: "The backend and this build are incompatible: update both, and check the backend address.",
		}, telemetry.OutcomeNetworkError
	case isTransient(p):
		return &problem.Error{
			Code: problem.CodeBackendUnreachable, Retryable: true, HTTPStatus: p.HTTPStatus, FixHint: p.FixHint,
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

// isTransient reports whether repeating a poll may help: no response arrived, a gateway failed, or there were too many
// requests.
func isTransient(p *problem.Error) bool {
	return p.Code == problem.CodeBackendUnreachable || p.Code == problem.CodeAdapterUnavailable ||
		p.HTTPStatus >= http.StatusInternalServerError || p.HTTPStatus == http.StatusTooManyRequests
}

// isRestartable reports whether a flow that ended with err may be polled again, because the network failed rather than
// the code.
func isRestartable(err error) bool {
	return err != nil && asProblem(err).Code == problem.CodeBackendUnreachable
}

// asProblem returns err as a *problem.Error, never nil.
func asProblem(err error) *problem.Error {
	var p *problem.Error
	switch {
	case errors.As(err, &p):
		return p
	case err == nil:
		return &problem.Error{}
	}
	return &problem.Error{Code: problem.CodeBackendUnreachable, Message: err.Error(), Retryable: true}
}
