package web

import (
	"errors"
	"net/http"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/secret"
)

// errorPage is what the template "error" shows.
type errorPage struct {
	Title string
	Text  string
	Next  string // what the person can do now
}

var errorPages = map[int]errorPage{
	http.StatusNotFound: {
		Title: "This page does not exist",
		Text:  "There is nothing at this address, or it belongs to another account.",
		Next:  "Check the address, or ask your coding agent for a fresh link.",
	},
	http.StatusForbidden: {
		Title: "That did not come from this page",
		Text:  "The request was refused and nothing was changed. This happens when a page was open for a long time, when you signed in or out in another tab, or when another site sent you here.",
		Next:  "Go back, reload the page and try again.",
	},
	http.StatusInternalServerError: {
		Title: "Something went wrong on our side",
		Text:  "Your request could not be completed. It is not your fault.",
		Next:  "Try again in a moment.",
	},
}

// fail answers with the error page that fits err. Details go to the log only, and never with the query.
func (w *Web) fail(rw http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	switch {
	case gone(err):
		status = http.StatusNotFound
	case errors.Is(err, errForbidden):
		status = http.StatusForbidden
	default:
		w.Log.ErrorContext(r.Context(), "serving a page", "method", r.Method, "path", secret.Redact(r.URL.Path), "error", err)
	}
	if err := w.render(rw, r, status, "error", errorPages[status]); err != nil {
		w.Log.ErrorContext(r.Context(), "rendering the error page", "error", err)
		http.Error(rw, errorPages[status].Title, status)
	}
}

// gone tells whether what a page is about is not there: never was, or was deleted or merged a moment ago.
func gone(err error) bool {
	return errors.Is(err, errNotFound) || errors.Is(err, projects.ErrNotFound) || errors.Is(err, projects.ErrSameProject) ||
		errors.Is(err, grants.ErrNoProject) || errors.Is(err, assistant.ErrNoProject) || errors.Is(err, audit.ErrNotFound)
}

func (w *Web) notFound(http.ResponseWriter, *http.Request) error { return errNotFound }
