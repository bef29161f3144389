package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/service-dev/service/backend/internal/link"
)

// activation is the data of the template "activate".
type activation struct {
	Code      string
	Spelled   string
	Requester []fact
	Until     string
	Granted   []string // effects of an approval
	Manage    bool     // whether there are pages for limiting and revoking access
	Seen      string   // binds Approve and Deny to this browser session and code
	Approve   string   // form URLs, which contain the code; no input contains it
	Deny      string
	SignOut   string
	Form      accountForm // shown to visitors who are not signed in
	Here      string      // the page's path, which replaces the path of a sign-in
	proofForm
	Hidden []hiddenField // hidden fields of the passkey form
}

// fact is one line about the requester.
type fact struct {
	Name  string
	Value string
	Note  string
}

// startPage is the data of the template "activate_start".
type startPage struct {
	Typed string // a malformed code, to be corrected
	Error string
}

const (
	maxTyped = 20 // characters of a malformed code that are shown again
	// The text names the letters that link.NormalizeUserCode rejects.
	malformedCode = "A code has eight letters, such as WDJB-MJHT, and no vowel or Y."
)

// activate shows who requests a link and how to decide. It never changes anything.
func (w *Web) activate(c *call) error {
	given := strings.TrimSpace(c.URL.Query().Get("code"))
	if given == "" {
		return w.render(c, http.StatusOK, "activate_start", startPage{})
	}
	code, ok := link.NormalizeUserCode(given)
	if !ok {
		return w.malformed(c, given)
	}
	form := accountForm{Mode: signUp, Next: activatePath(code)}
	if c.URL.Query().Get("mode") == signIn {
		form.Mode = signIn
	}
	return w.showActivation(c, http.StatusOK, code, form, proofForm{})
}

// malformed shows the form again with the input. A malformed code counts as a wrong code, but gets this page even
// after too many wrong codes. Because no valid code is malformed, the page reveals neither a code nor the throttling.
func (w *Web) malformed(c *call, given string) error {
	w.countWrong(c)
	typed := []rune(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, given))
	return w.render(c, http.StatusBadRequest, "activate_start",
		startPage{Typed: string(typed[:min(len(typed), maxTyped)]), Error: malformedCode})
}

// showActivation renders the activation page of a pending code (normalised). All other codes get the same page, unless
// the code was shown to this browser session while it was pending.
func (w *Web) showActivation(c *call, status int, code string, form accountForm, proof proofForm) error {
	req, err := w.pending(c, code)
	if isCodeGone(err) {
		return w.noCode(c, code, err)
	}
	if err == nil {
		err = w.rememberShown(c, code)
	}
	if err != nil {
		return err
	}
	usual, err := w.usualGrants(c)
	if err != nil {
		return err
	}
	here := activatePath(code)
	query := "?code=" + url.QueryEscape(code)
	if c.isSignedIn() && w.AskProof {
		proof.Needed, proof.FormID = true, "approve-form"
		if proof, err = w.askProof(c, proof, approval(code)); err != nil {
			return err
		}
		proof.Passkey.Action, proof.Passkey.Label = approvePath(code), "Approve with a passkey"
	}
	return w.render(c, status, "activate", activation{
		Code: code, Spelled: spelled(code),
		Requester: w.requesterFacts(c, req), Until: clockTime(req.ExpiresAt),
		Granted: granted(usual), Manage: w.Dashboard != nil,
		Seen:    w.seenToken(c, code),
		Approve: approvePath(code), Deny: "/activate/deny" + query,
		SignOut: withNext("/signout", here),
		Form:    w.complete(c, form).links(here), Here: here, proofForm: proof,
		Hidden: []hiddenField{{seenField, w.seenToken(c, code)}},
	})
}

func approvePath(code string) string { return "/activate/approve?code=" + url.QueryEscape(code) }

// approval identifies the approval of a code, in the form of actionOf.
func approval(code string) string { return approvePath(code) + "\n" }

func activatePath(code string) string { return "/activate?code=" + url.QueryEscape(code) }

// pending looks up the code. After too many wrong codes from one address, it rejects every code, so that guessing
// reveals neither a code nor the throttling.
func (w *Web) pending(c *call, code string) (link.Code, error) {
	ip := w.ClientIP(c.Request)
	if w.codes.Spent(ip) {
		w.Links.Throttled(w.caller(c))
		return link.Code{}, link.ErrUnknown
	}
	req, err := w.Links.View(w.caller(c), code)
	if isCodeGone(err) {
		w.codes.Take(ip)
	}
	return req, err
}

// isCodeGone reports whether a code is unknown, expired or used. Pages must not distinguish these cases.
func isCodeGone(err error) bool {
	return isAny(err, []error{link.ErrUnknown, link.ErrExpired, link.ErrDenied, link.ErrNotPending})
}

// countWrong counts a code as wrong without looking it up.
func (w *Web) countWrong(c *call) {
	ip := w.ClientIP(c.Request)
	if w.codes.Spent(ip) {
		w.Links.Throttled(w.caller(c))
		return
	}
	w.codes.Take(ip)
}

// caller adds the client's address and browser to the context, for the linking trail.
func (w *Web) caller(c *call) context.Context {
	return link.WithBrowser(link.WithAddress(c.Context(), w.ClientIP(c.Request)), c.browserID)
}

// maxShown is the number of codes that a browser session remembers: one for each window that a user may have open.
const maxShown = 8

// rememberShown records that a pending code was shown to this browser session.
func (w *Web) rememberShown(c *call, code string) error {
	token := w.seenToken(c, code)
	shown := slices.DeleteFunc(w.shownCodes(c), func(one string) bool { return one == token })
	shown = append(shown, token)
	return w.saveFlow(c, flowCode, shown[max(0, len(shown)-maxShown):])
}

// shownCodes returns the seenToken of each code that was shown to this browser session while it was pending.
func (w *Web) shownCodes(c *call) (tokens []string) {
	if !w.loadFlow(c, flowCode, &tokens) {
		return nil
	}
	return tokens
}

// noCode renders the page for a code that cannot be approved. It reports the code's outcome only to a browser session
// that was shown the code while it was pending. Others could otherwise distinguish a guess from a code that existed.
func (w *Web) noCode(c *call, code string, cause error) error {
	var fate string
	token := w.seenToken(c, code)
	if slices.ContainsFunc(w.shownCodes(c), func(one string) bool { return equal(one, token) }) {
		switch {
		case errors.Is(cause, link.ErrDenied):
			fate = "denied"
		case errors.Is(cause, link.ErrNotPending):
			fate = "approved"
		case errors.Is(cause, link.ErrExpired):
			fate = "expired"
		}
	}
	return w.render(c, http.StatusNotFound, "activate_gone", fate)
}

func (w *Web) approve(c *call) error {
	if !c.isSignedIn() {
		return errForbidden
	}
	code, ok := link.NormalizeUserCode(c.URL.Query().Get("code"))
	if !ok || !w.seenOK(c, code) {
		return errForbidden
	}
	f, err := w.checkProof(c)
	if err != nil {
		return err
	}
	if f.Needed {
		return w.showActivation(c, http.StatusUnprocessableEntity, code, accountForm{}, f)
	}
	return w.decide(c, "/activate/approved", func(code string) error {
		return w.Links.Approve(w.caller(c), code, c.account.ID)
	})
}

// deny requires no account: anyone who was shown the code may refuse it.
func (w *Web) deny(c *call) error {
	return w.decide(c, "/activate/denied", func(code string) error {
		return w.Links.Deny(w.caller(c), code)
	})
}

// decide calls act if this browser session was shown the code, and then redirects to done.
func (w *Web) decide(c *call, done string, act func(code string) error) error {
	code, ok := link.NormalizeUserCode(c.URL.Query().Get("code"))
	if !ok || !w.seenOK(c, code) {
		return errForbidden
	}
	err := act(code)
	if isCodeGone(err) {
		_, cause := w.Links.View(w.caller(c), code) // View returns the reason
		return w.noCode(c, code, cause)
	}
	if err != nil {
		return err
	}
	return c.redirect(done)
}

func (w *Web) approved(c *call) error {
	return w.render(c, http.StatusOK, "activate_approved", nil)
}

func (w *Web) denied(c *call) error {
	return w.render(c, http.StatusOK, "activate_denied", nil)
}

func (w *Web) requesterFacts(c *call, req link.Code) []fact {
	ip := fact{Name: "Network address", Value: printable(req.Requester.IP)}
	if req.Requester.IP == w.ClientIP(c.Request) {
		ip.Note = "maybe a proxy's" // clients of one proxy share its address, so equal addresses prove nothing
		if w.AddressKnown(c.Request) {
			ip.Note = "same as this browser"
		}
	}
	return []fact{
		{Name: "Computer", Value: printable(req.Requester.Host)},
		{Name: "System", Value: printable(req.Requester.OS)},
		{Name: "Program", Value: printable(req.Requester.Client)},
		ip,
		{Name: "Asked", Value: ago(req.CreatedAt, w.Now()), Note: clockTime(req.CreatedAt)},
	}
}

// spelled returns the code letter by letter for screen readers.
func spelled(code string) string {
	return strings.Join(strings.Split(strings.ReplaceAll(code, "-", ","), ""), " ")
}
