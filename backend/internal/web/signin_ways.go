package web

import (
	"net/http"

	"github.com/service-dev/service/backend/internal/account"
)

// wayIn is a button that signs people in without a password.
type wayIn struct {
	Name   string
	Action string
}

// ways adds to the account form how people may sign in besides a password, as far as this backend has it.
func (w *Web) ways(f accountForm) accountForm { return f }

// visit says how and from where a browser is signed in.
func (w *Web) visit(r *http.Request, method string) account.Visit {
	return account.Visit{Method: method, UserAgent: r.UserAgent(), IP: w.ClientIP(r)}
}
