package web

import (
	"errors"
	"net/http"
	"slices"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/oidc"
	"github.com/service-dev/service/backend/internal/passkey"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/backend/internal/sessions"
)

// errorPage is the data of the template "error".
type errorPage struct {
	Title string
	Text  string
	Next  string // the user's next step
}

var errorPages = map[int]errorPage{
	http.StatusNotFound: {
		Title: "This page does not exist",
		Text:  "There is nothing at this address, or it belongs to another account.",
		Next:  "Check the address, or ask your coding agent for a new link.",
	},
	http.StatusForbidden: {
		Title: "That did not come from this page",
		Text: "The request was refused and nothing was changed. This happens when a page was open for a long time, " +
			"when you signed in or out in another tab, or when another site sent you here.",
		Next: "Go back, reload the page and try again.",
	},
	http.StatusServiceUnavailable: {
		Title: "Too many people are signing in",
		Text:  "Your password was not checked, and nothing was changed.",
		Next:  "Go back and try again in a few seconds.",
	},
	http.StatusInternalServerError: {
		Title: "Something went wrong on our side",
		Text:  "Your request could not be completed. It is not your fault.",
		Next:  "Try again in a moment.",
	},
}

// fail responds with the error page for err. It logs the details, but never the query.
func (w *Web) fail(c *call, err error) {
	status := http.StatusInternalServerError
	switch {
	case isAny(err, notFoundErrors):
		status = http.StatusNotFound
	case errors.Is(err, errForbidden):
		status = http.StatusForbidden
	case errors.Is(err, account.ErrBusy):
		status = http.StatusServiceUnavailable
		c.rw.Header().Set("Retry-After", "5")
	default:
		w.Log.ErrorContext(c.Context(), "failed to serve page", "method", c.Method,
			"path", secret.Redact(c.URL.Path), "err", err)
	}
	if err := w.render(c, status, "error", errorPages[status]); err != nil {
		w.Log.ErrorContext(c.Context(), "failed to render error page", "err", err)
		http.Error(c.rw, errorPages[status].Title, status)
	}
}

// notFoundErrors are the errors for things that do not exist, belong to another account, or were just deleted or
// merged. Handlers return them unchanged.
var notFoundErrors = []error{
	errNotFound, account.ErrNotFound, assistant.ErrNoProject, audit.ErrNotFound, connpage.ErrNotFound,
	credentials.ErrNotSet,
	credentials.ErrUnknownProvider, grants.ErrNoProject, link.ErrUnknown, oidc.ErrUnknownProvider, passkey.ErrUnknown,
	projects.ErrNoKey, projects.ErrNotFound, projects.ErrSameProject, sessions.ErrClosed, sessions.ErrNotFound,
}

func isAny(err error, targets []error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// failWith returns a handler that serves the error page for err.
func (w *Web) failWith(err error) http.Handler { return w.page(func(*call) error { return err }) }
