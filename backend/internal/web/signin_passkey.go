package web

import (
	"errors"
	"net/http"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/passkey"
)

const badPasskey = "This passkey was not accepted. Try again, or sign in another way."

// maxPasskeyName bounds a passkey's name, in characters.
const maxPasskeyName = 60

// askPasskey gives the script a challenge to sign in with.
func (w *Web) askPasskey(rw http.ResponseWriter, r *http.Request) error {
	options, sealed, err := w.Passkeys.BeginLogin(r.Context())
	if err != nil {
		return err
	}
	return w.challenge(rw, r, options, sealed)
}

// challenge hands options to the script and keeps what the finish needs in this browser.
func (w *Web) challenge(rw http.ResponseWriter, r *http.Request, options []byte, sealed string) error {
	if err := w.remember(rw, r, momentPasskey, sealed); err != nil {
		return err
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = rw.Write(options) // the browser may be gone
	return nil
}

// signInWithPasskey takes the form that the script filled in.
func (w *Web) signInWithPasskey(rw http.ResponseWriter, r *http.Request) error {
	f := accountForm{Mode: signIn, Next: nextOf(r), Problem: badPasskey}
	if w.signIns.Take(w.ClientIP(r)) > 0 {
		return w.tooMany(rw, r, f)
	}
	sealed := w.sealed(rw, r)
	id, err := w.Passkeys.FinishLogin(r.Context(), sealed, []byte(r.PostFormValue("credential")))
	var person account.Account
	if err == nil {
		person, err = w.Settings.ByID(r.Context(), id)
	}
	switch {
	case err == nil:
		return w.enter(rw, r, person, f.Next, account.ByPasskey)
	case errors.Is(err, passkey.ErrSuspended), errors.Is(err, account.ErrSuspended):
		f.Problem = suspended
	case errors.Is(err, passkey.ErrClone):
		f.Problem = "This passkey seems to have been copied, so it was refused. Sign in another way and remove it in your settings."
	case errors.Is(err, passkey.ErrInvalid), errors.Is(err, passkey.ErrUnknown), errors.Is(err, account.ErrNotFound):
	default:
		return err
	}
	return w.showForm(rw, r, http.StatusUnprocessableEntity, f)
}

// sealed is what challenge kept, once.
func (w *Web) sealed(rw http.ResponseWriter, r *http.Request) (sealed string) {
	w.recall(r, momentPasskey, &sealed)
	w.forget(rw, momentPasskey)
	return sealed
}

// askNewPasskey gives a challenge only soon after a sign-in, and addPasskey takes no answer without one: who finds a
// browser open must not get to keep the account.
func (w *Web) askNewPasskey(rw http.ResponseWriter, r *http.Request, a Account) error {
	stale, err := w.stale(r, a)
	if err != nil {
		return err
	}
	if stale {
		return refusePasskey(rw, staleSignIn)
	}
	options, sealed, err := w.Passkeys.BeginRegister(r.Context(), a.ID)
	if errors.Is(err, passkey.ErrTooMany) {
		return refusePasskey(rw, tooManyPasskeys)
	}
	if err != nil {
		return err
	}
	return w.challenge(rw, r, options, sealed)
}

// refusePasskey has the script show a sentence of ours.
func refusePasskey(rw http.ResponseWriter, sentence string) error {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(http.StatusConflict)
	_, _ = rw.Write([]byte(`{"message":"` + sentence + `"}`)) // the browser may be gone
	return nil
}

const tooManyPasskeys = "There are as many passkeys as an account may have. Remove one first."

func (w *Web) addPasskey(rw http.ResponseWriter, r *http.Request, a Account) error {
	var f formErrors
	name := oneLine(r.PostFormValue("name"))
	if n := len([]rune(name)); n == 0 || n > maxPasskeyName {
		f.wrong("passkey-name", "Give the passkey a name of at most 60 characters, so that you know it again.")
		return w.showSettings(rw, r, a, settingsPage{formErrors: f})
	}
	_, err := w.Passkeys.FinishRegister(r.Context(), a.ID, w.sealed(rw, r), []byte(r.PostFormValue("credential")), name, audit.Person())
	switch {
	case err == nil:
		return w.done(rw, r, "passkey-added")
	case errors.Is(err, passkey.ErrInvalid):
		f.Problem = "The passkey was not added: the answer of your browser does not fit, or came too late. Try again."
	case errors.Is(err, passkey.ErrTooMany):
		f.Problem = tooManyPasskeys
	default:
		return err
	}
	return w.showSettings(rw, r, a, settingsPage{formErrors: f})
}

func (w *Web) removePasskey(rw http.ResponseWriter, r *http.Request, a Account) error {
	err := w.Passkeys.Remove(r.Context(), a.ID, r.PathValue("id"), audit.Person())
	switch {
	case errors.Is(err, passkey.ErrUnknown):
		return errNotFound
	case errors.Is(err, passkey.ErrLastWayIn):
		return w.showSettings(rw, r, a, settingsPage{formErrors: formErrors{Problem: lastWayIn}})
	case err != nil:
		return err
	}
	return w.done(rw, r, "passkey-removed")
}
