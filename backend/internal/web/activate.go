package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/link"
)

// activation is what the template "activate" shows.
type activation struct {
	Code    string
	Spelled string
	Asker   []fact
	Until   string
	Granted []string // what an approval allows
	Manage  bool     // whether there are pages to limit and revoke it on
	Seen    string   // binds Approve and Deny to this browser session and code
	Approve string   // form addresses; the code is in them and in no input
	Deny    string
	SignOut string
	Form    accountForm // shown when nobody is signed in
}

// fact is one line about the requester.
type fact struct {
	Name  string
	Value string
	Note  string
}

// activate shows who asks for a link and lets the person decide. It never changes anything.
func (w *Web) activate(rw http.ResponseWriter, r *http.Request) error {
	given := r.URL.Query().Get("code")
	if given == "" {
		return w.render(rw, r, http.StatusOK, "activate_start", nil)
	}
	code, _ := link.NormalizeUserCode(given)
	form := accountForm{Mode: signUp, Next: activatePath(code)}
	if r.URL.Query().Get("mode") == signIn {
		form.Mode = signIn
	}
	return w.showActivation(rw, r, http.StatusOK, code, form)
}

// showActivation renders the activation page of a pending code (normalised, "" if it was none), or the one page for every code that is not.
func (w *Web) showActivation(rw http.ResponseWriter, r *http.Request, status int, code string, form accountForm) error {
	req, err := w.pending(r, code)
	if noLonger(err) {
		return w.noCode(rw, r)
	}
	if err != nil {
		return err
	}
	here := activatePath(code)
	query := "?code=" + url.QueryEscape(code)
	return w.render(rw, r, status, "activate", activation{
		Code: code, Spelled: spelled(code),
		Asker: w.asker(r, req), Until: clock(req.ExpiresAt),
		Granted: granted(grants.Default()), Manage: w.Dashboard != nil,
		Seen:    w.seenToken(r, code),
		Approve: "/activate/approve" + query, Deny: "/activate/deny" + query,
		SignOut: withNext("/signout", here),
		Form:    w.ways(form).links(here),
	})
}

func activatePath(code string) string { return "/activate?code=" + url.QueryEscape(code) }

// pending looks the code up. After too many wrong codes from one address it says no to every code, so that
// guessing learns nothing, not even that it was throttled.
func (w *Web) pending(r *http.Request, code string) (link.Code, error) {
	ip := w.ClientIP(r)
	ctx := w.caller(r)
	if w.codes.Spent(ip) {
		w.Links.Throttled(ctx)
		return link.Code{}, link.ErrUnknown
	}
	if code == "" {
		w.codes.Take(ip)
		return link.Code{}, link.ErrUnknown
	}
	req, err := w.Links.View(ctx, code)
	if noLonger(err) {
		w.codes.Take(ip)
	}
	return req, err
}

// caller notes who asks, for the trail of linking.
func (w *Web) caller(r *http.Request) context.Context {
	return link.WithBrowser(link.WithAddress(r.Context(), w.ClientIP(r)), currentBrowser(r).id)
}

func (w *Web) noCode(rw http.ResponseWriter, r *http.Request) error {
	return w.render(rw, r, http.StatusNotFound, "activate_gone", nil)
}

func (w *Web) approve(rw http.ResponseWriter, r *http.Request) error {
	account, signedIn := currentAccount(r)
	if !signedIn {
		return errForbidden
	}
	return w.decide(rw, r, "/activate/approved", func(code string) error {
		return w.Links.Approve(w.caller(r), code, account.ID)
	})
}

// deny needs no account: whoever was shown the code may refuse it.
func (w *Web) deny(rw http.ResponseWriter, r *http.Request) error {
	return w.decide(rw, r, "/activate/denied", func(code string) error {
		return w.Links.Deny(w.caller(r), code)
	})
}

// decide runs act if this browser session was shown the code, then sends the browser on to done.
func (w *Web) decide(rw http.ResponseWriter, r *http.Request, done string, act func(code string) error) error {
	code, ok := link.NormalizeUserCode(r.URL.Query().Get("code"))
	if !ok || !w.seenOK(r, code) {
		return errForbidden
	}
	err := act(code)
	if noLonger(err) {
		return w.noCode(rw, r)
	}
	if err != nil {
		return err
	}
	http.Redirect(rw, r, done, http.StatusSeeOther)
	return nil
}

func (w *Web) approved(rw http.ResponseWriter, r *http.Request) error {
	return w.render(rw, r, http.StatusOK, "activate_approved", nil)
}

func (w *Web) denied(rw http.ResponseWriter, r *http.Request) error {
	return w.render(rw, r, http.StatusOK, "activate_denied", nil)
}

func (w *Web) asker(r *http.Request, req link.Code) []fact {
	ip := fact{Name: "Network address", Value: told(req.Requester.IP)}
	if req.Requester.IP == w.ClientIP(r) {
		ip.Note = "maybe a proxy's" // where everybody has the address of one, being alike says nothing
		if w.AddressKnown(r) {
			ip.Note = "same as this browser"
		}
	}
	return []fact{
		{Name: "Computer", Value: told(req.Requester.Host)},
		{Name: "System", Value: told(req.Requester.OS)},
		{Name: "Program", Value: told(req.Requester.Client)},
		ip,
		{Name: "Asked", Value: ago(w.Now().Sub(req.CreatedAt)), Note: clock(req.CreatedAt)},
	}
}

// told cleans a requester's word for show: one line, nothing invisible or direction-changing, at most 100 characters.
func told(s string) string {
	clean := strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) || c == unicode.ReplacementChar {
			return -1
		}
		return c
	}, s)
	if chars := []rune(clean); len(chars) > 100 {
		clean = string(chars[:100]) + "…"
	}
	if strings.TrimSpace(clean) == "" {
		return "not told"
	}
	return clean
}

func clock(t time.Time) string { return t.UTC().Format("15:04 UTC") }

func ago(d time.Duration) string {
	switch m := int(d.Minutes()); {
	case m < 1:
		return "just now"
	case m == 1:
		return "1 minute ago"
	default:
		return fmt.Sprintf("%d minutes ago", m)
	}
}

// spelled is the code letter by letter, for screen readers.
func spelled(code string) string {
	return strings.Join(strings.Split(strings.ReplaceAll(code, "-", ","), ""), " ")
}
