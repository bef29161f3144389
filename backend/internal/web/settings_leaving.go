package web

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
)

// freshSignIn is how long ago somebody may have signed in to add another way in, and without a password to ask for, to
// set one, to change the address or to delete the account.
const freshSignIn = 10 * time.Minute

// downloadTime is how long a browser may take to fetch its export.
const downloadTime = 10 * time.Minute

// export answers with the account's data as a file. It is complete before its first byte is sent: a browser that reads
// slowly holds a file then, and no connection to the database, of which there are few.
func (w *Web) export(rw http.ResponseWriter, r *http.Request, a Account) error {
	file, err := scratchFile()
	if err != nil {
		return fmt.Errorf("making room for an export: %w", err)
	}
	defer file.Close()
	if err := w.Settings.Export(r.Context(), a.ID, file, audit.Person()); err != nil {
		return err
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return fmt.Errorf("measuring an export: %w", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading an export: %w", err)
	}
	wire := http.NewResponseController(rw)
	_ = wire.SetWriteDeadline(time.Now().Add(downloadTime)) // where there is none to set, the reader is no browser
	h := rw.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.FormatInt(size, 10)) // so that one that ends early does not look whole
	h.Set("Content-Disposition", `attachment; filename="account-`+w.Now().UTC().Format("2006-01-02")+`.json"`)
	if _, err := io.Copy(rw, file); err == nil {
		_ = wire.SetWriteDeadline(time.Time{}) // the connection is asked more
	}
	return nil
}

// leavingPage is what the template "settings_delete" shows.
type leavingPage struct {
	formErrors
	Email       string
	Typed       string
	HasPassword bool
	Stale       bool // no password to ask for, and signed in too long ago
}

func (w *Web) leavingForm(rw http.ResponseWriter, r *http.Request, a Account) error {
	p, err := w.leavingPage(r, a)
	if err != nil {
		return err
	}
	return w.render(rw, r, http.StatusOK, "settings_delete", p)
}

func (w *Web) leavingPage(r *http.Request, a Account) (leavingPage, error) {
	person, err := w.Settings.ByID(r.Context(), a.ID)
	if err != nil {
		return leavingPage{}, err
	}
	p := leavingPage{Email: person.Email, HasPassword: person.HasPassword()}
	if p.HasPassword {
		return p, nil
	}
	p.Stale, err = w.stale(r, a)
	return p, err
}

// stale tells whether this browser signed in longer ago than freshSignIn.
func (w *Web) stale(r *http.Request, a Account) (bool, error) {
	open, err := w.Settings.Sessions(r.Context(), a.ID, browserSecret(r))
	for _, s := range open {
		if s.Current && w.Now().Sub(s.CreatedAt) < freshSignIn {
			return false, err
		}
	}
	return true, err
}

// deleteAccount deletes everything when the address was typed and the person proved to be the account's.
func (w *Web) deleteAccount(rw http.ResponseWriter, r *http.Request, a Account) error {
	p, err := w.leavingPage(r, a)
	if err != nil {
		return err
	}
	p.Typed = strings.TrimSpace(r.PostFormValue("email"))
	if account.FoldEmail(p.Typed) != account.FoldEmail(p.Email) {
		p.wrong("email", "This is not your account's e-mail address.")
	}
	if p.HasPassword && !p.Failed() {
		err := w.Settings.CheckPassword(r.Context(), a.ID, clipped(r.PostFormValue("password")))
		if refused := passwordRefused(err); refused != "" {
			p.wrong("password", refused)
		} else if err != nil {
			return err
		}
	}
	if p.Failed() || p.Stale {
		return w.render(rw, r, http.StatusUnprocessableEntity, "settings_delete", p)
	}
	if err := w.Settings.Delete(r.Context(), a.ID, audit.Person()); err != nil {
		return err
	}
	w.newVisitor(rw)
	w.forgetBrowser(rw, p.Email)
	http.Redirect(rw, r, "/goodbye", http.StatusSeeOther)
	return nil
}

func (w *Web) goodbye(rw http.ResponseWriter, r *http.Request) error {
	return w.say(rw, r, http.StatusOK, said{
		Title: "Your account is deleted",
		Text: []string{"The account and all that belonged to it are gone, and you are signed out. Your coding agents are told with their next call.",
			"What lies on your own computer is still there: servicectl logout removes what it knows of the account."},
		Href: "/", Label: "Go to the start page", Quiet: true,
	})
}
