package web

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/passkey"
)

// Browsers send the cookies of a host to every port of that host. On your own computer, another program may therefore
// obtain the cookies of a signed-in browser, or set its own. If Options.AskProof is set, a form that grants access to
// a program also requires proof that the account's owner posts it: the password or a passkey. One proof is valid for
// one action.

// Names of the fields of a form that are not part of its action.
const (
	passwordField   = "password"
	credentialField = "credential" // the response of a passkey
	proofField      = "proof"      // replaces the password right after a sign-in on the same page
)

const beginProofPath = "/account/proof/begin"

// proofForm is the data of the template "proof-fields", which asks for a proof before an action.
type proofForm struct {
	formErrors
	Needed  bool
	FormID  string // ID of the form that contains the password input
	Proof   string // replaces the password; "" to ask for it
	Passkey passkeyProof
}

// passkeyProof is the form that repeats an action with a passkey. Begin is "" if the account has no passkey for this
// host.
type passkeyProof struct{ Action, Begin, Label string }

// proofPage is the data of the template "proof", which asks for a proof and then repeats a request.
type proofPage struct {
	proofForm
	Title, Text string
	Action      string
	Hidden      []hiddenField // the posted fields
}

type hiddenField struct{ Name, Value string }

// passkeyChallenge is the state of a passkey ceremony that proves one action.
type passkeyChallenge struct {
	Sealed string `json:"s"`
	Action string `json:"a"`
}

// proven wraps the handler of a form that needs a proof.
func proven(title, text string, h func(*Web, *call) error) func(*Web, *call) error {
	return func(w *Web, c *call) error {
		if ok, err := w.isProven(c, title, text); !ok {
			return err
		}
		return h(w, c)
	}
}

// isProven reports whether the posted form contains a proof, or needs none. If the proof is missing, isProven shows a
// page with the title and text that asks for it.
func (w *Web) isProven(c *call, title, text string) (bool, error) {
	f, err := w.checkProof(c)
	if err != nil || !f.Needed {
		return err == nil, err
	}
	if f, err = w.askProof(c, f, actionOf(c)); err != nil {
		return false, err
	}
	page := proofPage{proofForm: f, Title: title, Text: text, Action: c.URL.RequestURI()}
	for _, name := range slices.Sorted(maps.Keys(actionFields(c))) {
		for _, value := range c.PostForm[name] {
			page.Hidden = append(page.Hidden, hiddenField{name, value})
		}
	}
	return false, w.render(c, page.status(), "proof", page)
}

// checkProof checks the proof in the posted form. If there is no valid proof, it returns a form that asks for one and
// describes the problem.
func (w *Web) checkProof(c *call) (f proofForm, err error) {
	if !w.AskProof {
		return f, nil
	}
	f.Needed = true
	switch {
	case c.PostFormValue(proofField) != "":
		f.Needed = !equal(c.PostFormValue(proofField), w.proofAfterSignIn(c, actionOf(c)))
		return f, nil
	case c.PostFormValue(credentialField) == "" && c.PostFormValue(passwordField) == "":
		return f, nil
	case w.signIns.Take(w.ClientIP(c.Request)) > 0:
		f.add(passwordField, tooMany)
		return f, nil
	case c.PostFormValue(credentialField) != "":
		f.Needed, err = w.provePasskey(c, &f)
		return f, err
	}
	err = w.Accounts.CheckPassword(c.Context(), c.account.ID, passwordValue(c))
	if problem := passwordProblem(err); problem != "" {
		f.add(passwordField, problem)
		return f, nil
	}
	f.Needed = err != nil
	return f, err
}

// provePasskey checks a passkey's response, which must belong to the account and to a challenge for this action. It
// reports whether a proof is still needed.
func (w *Web) provePasskey(c *call, f *proofForm) (needed bool, err error) {
	var challenge passkeyChallenge
	w.loadFlow(c, flowProof, &challenge)
	w.endFlow(c, flowProof)
	if w.Passkeys == nil || !equal(challenge.Action, w.sealAction(c, actionOf(c))) {
		f.Problem = badPasskey
		return true, nil
	}
	owner, err := w.Passkeys.FinishLogin(c.Context(), challenge.Sealed, []byte(c.PostFormValue(credentialField)))
	if err == nil && owner == c.account.ID {
		return false, nil
	}
	f.Problem = badPasskey
	if errors.Is(err, passkey.ErrClone) {
		f.Problem = copiedPasskey
	}
	known := []error{passkey.ErrInvalid, passkey.ErrUnknown, passkey.ErrClone, passkey.ErrSuspended,
		account.ErrNotFound}
	if err != nil && !isAny(err, known) {
		return true, err
	}
	return true, nil
}

// askProof adds the available ways to prove an action to a form.
func (w *Web) askProof(c *call, f proofForm, action string) (proofForm, error) {
	f.FormID = cmp.Or(f.FormID, "prove")
	if f.Proof != "" || w.Passkeys == nil || !w.isSiteHost(c) {
		return f, nil
	}
	keys, err := w.Passkeys.List(c.Context(), c.account.ID)
	if slices.ContainsFunc(keys, w.worksHere) {
		f.Passkey = passkeyProof{Action: c.URL.RequestURI(), Label: "Continue with a passkey",
			Begin: beginProofPath + "?action=" + url.QueryEscape(w.sealAction(c, action))}
	}
	return f, err
}

// beginProof sends the script a challenge for a passkey that proves one action.
func (w *Web) beginProof(c *call) error {
	options, sealed, err := w.Passkeys.BeginLogin(c.Context())
	if err != nil {
		return err
	}
	if err := w.saveFlow(c, flowProof, passkeyChallenge{sealed, c.URL.Query().Get("action")}); err != nil {
		return err
	}
	c.sendJSON(http.StatusOK, options)
	return nil
}

// proofAfterSignIn returns the value that replaces the password in the response to a sign-in. The value must not be
// in the response to a GET, because a program with the cookies could request it. It can be reused unless the action
// can happen only once.
func (w *Web) proofAfterSignIn(c *call, action string) string {
	return w.sign("proof", c.browserID, c.account.ID, action)
}

// sealAction identifies an action of this browser session and account in a passkey challenge.
func (w *Web) sealAction(c *call, action string) string {
	return w.sign("proven action", c.browserID, c.account.ID, action)
}

// actionOf identifies the effect of a request: its URL and the fields of its form.
func actionOf(c *call) string {
	return c.URL.RequestURI() + "\n" + actionFields(c).Encode()
}

// actionFields returns the fields of the posted form without tokens and proofs.
func actionFields(c *call) url.Values {
	c.PostFormValue(csrfField) // this call parses the form
	fields := maps.Clone(c.PostForm)
	for _, name := range []string{csrfField, seenField, passwordField, credentialField, proofField} {
		delete(fields, name)
	}
	return fields
}
