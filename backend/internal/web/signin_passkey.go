package web

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/passkey"
)

const (
	badPasskey    = "This passkey was not accepted. Try again, or sign in another way."
	copiedPasskey = "Sign in another way and remove this passkey in your settings. " +
		"It was refused, because it seems to be a copy."
	tooManyPasskeys = "Remove a passkey first: the account has the maximum number."
	// maxPasskeyName limits a passkey's name, in characters.
	maxPasskeyName = 60
)

// beginPasskey sends a sign-in challenge to the script.
func (w *Web) beginPasskey(c *call) error {
	options, sealed, err := w.Passkeys.BeginLogin(c.Context())
	if err != nil {
		return err
	}
	return w.sendChallenge(c, options, sealed)
}

// sendChallenge sends options to the script, and stores the state for checking the response in this browser.
func (w *Web) sendChallenge(c *call, options []byte, sealed string) error {
	if err := w.saveFlow(c, flowPasskey, sealed); err != nil {
		return err
	}
	c.sendJSON(http.StatusOK, options)
	return nil
}

func (c *call) sendJSON(status int, body []byte) {
	c.rw.Header().Set("Content-Type", "application/json")
	c.rw.WriteHeader(status)
	_, _ = c.rw.Write(body) // the browser may have disconnected
}

// takeChallenge returns the state stored by sendChallenge and removes it.
func (w *Web) takeChallenge(c *call) (sealed string) {
	w.loadFlow(c, flowPasskey, &sealed)
	w.endFlow(c, flowPasskey)
	return sealed
}

// signInWithPasskey handles the form that the script filled in.
func (w *Web) signInWithPasskey(c *call) error {
	f := accountForm{Mode: signIn, Next: nextOf(c), formErrors: formErrors{Problem: badPasskey}}
	if w.signIns.Take(w.ClientIP(c.Request)) > 0 {
		return w.tooMany(c, f)
	}
	id, err := w.Passkeys.FinishLogin(c.Context(), w.takeChallenge(c), []byte(c.PostFormValue("credential")))
	var owner account.Account
	if err == nil {
		owner, err = w.Accounts.ByID(c.Context(), id)
	}
	switch {
	case err == nil:
		return w.enter(c, owner, f.Next, account.ByPasskey)
	case errors.Is(err, passkey.ErrSuspended), errors.Is(err, account.ErrSuspended):
		f.Problem = suspended
	case errors.Is(err, passkey.ErrClone):
		f.Problem = copiedPasskey
	case !isAny(err, []error{passkey.ErrInvalid, passkey.ErrUnknown, account.ErrNotFound}):
		return err
	}
	return w.showForm(c, http.StatusUnprocessableEntity, f)
}

// beginNewPasskey sends a challenge only soon after a sign-in or with the password. addPasskey accepts no response
// without a challenge. So someone who finds a browser unattended cannot take over the account.
func (w *Web) beginNewPasskey(c *call) error {
	problem, canEnter, err := w.prove(c)
	if err != nil {
		return err
	}
	if problem != "" {
		return refusePasskey(c, problem, canEnter)
	}
	options, sealed, err := w.Passkeys.BeginRegister(c.Context(), c.account.ID)
	if errors.Is(err, passkey.ErrTooMany) {
		return refusePasskey(c, tooManyPasskeys, false)
	}
	if err != nil {
		return err
	}
	return w.sendChallenge(c, options, sealed)
}

// refusePasskey makes the script show a message, and the password field if that would help.
func refusePasskey(c *call, message string, askPassword bool) error {
	body, err := json.Marshal(map[string]any{"message": message, "password": askPassword})
	if err != nil {
		return err
	}
	c.sendJSON(http.StatusConflict, body)
	return nil
}

func (w *Web) addPasskey(c *call) error {
	var p settingsPage
	name := oneLine(c.PostFormValue("name"))
	p.Keys.Name = name
	if n := len([]rune(name)); n == 0 || n > maxPasskeyName {
		p.add("passkey-name", "Give the passkey a name of at most 60 characters, so that you recognise it.")
		return w.showSettings(c, p)
	}
	_, err := w.Passkeys.FinishRegister(c.Context(), c.account.ID, w.takeChallenge(c),
		[]byte(c.PostFormValue("credential")), name, audit.Person())
	switch {
	case errors.Is(err, passkey.ErrInvalid):
		p.Problem = "Try again. The passkey was not added: your browser's answer was wrong or came too late."
		return w.showSettings(c, p)
	case errors.Is(err, passkey.ErrTooMany):
		return w.showProblem(c, tooManyPasskeys)
	}
	return w.settingsDone(c, err, "passkey-added")
}

func (w *Web) removePasskey(c *call) error {
	err := w.Passkeys.Remove(c.Context(), c.account.ID, c.PathValue("id"), audit.Person())
	if errors.Is(err, passkey.ErrLastWayIn) {
		return w.showProblem(c, lastMethod)
	}
	return w.settingsDone(c, err, "passkey-removed")
}
