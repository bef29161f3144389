package web

import (
	"net/http"
	"net/url"
)

// formErrors describes the problems of a submitted form. Page types embed it, and the template "summary" shows it.
type formErrors struct {
	Problem string // a problem of the form as a whole
	Fields  []fieldError
	ToTop   bool // whether the summary gets the focus; otherwise a field may have it
}

// fieldError is the problem of one field. Field is the id of its input.
type fieldError struct{ Field, Text string }

func (f *formErrors) add(field, text string) { f.Fields = append(f.Fields, fieldError{field, text}) }

// Failed reports whether the user must correct the form.
func (f formErrors) Failed() bool { return f.Problem != "" || len(f.Fields) > 0 }

// Error returns the error text of one field, or "".
func (f formErrors) Error(field string) string {
	for _, e := range f.Fields {
		if e.Field == field {
			return e.Text
		}
	}
	return ""
}

// status returns 422 if the user must correct the form. Otherwise it returns 200.
func (f formErrors) status() int {
	if f.Failed() {
		return http.StatusUnprocessableEntity
	}
	return http.StatusOK
}

// message is the data of the template "message": a statement and a link to continue.
type message struct {
	Title string
	Text  []string
	Href  string
	Label string
	Quiet bool // whether the link only leaves the page and is not the next step
	// Other is the label of a second link, to OtherHref; "" for none.
	Other, OtherHref string
}

func (w *Web) showMessage(c *call, status int, m message) error {
	return w.render(c, status, "message", m)
}

// showTooMany responds to an attempt over the limit if there is no form to show again.
func (w *Web) showTooMany(c *call) error {
	c.rw.Header().Set("Retry-After", "60")
	return w.showMessage(c, http.StatusTooManyRequests, message{
		Title: "Too many attempts", Text: []string{tooMany, "Nothing was changed."},
		Href: "/", Label: "Go to the start page", Quiet: true,
	})
}

// showBusy responds to a request from an account that has used up its share of the server.
func (w *Web) showBusy(c *call) error {
	c.rw.Header().Set("Retry-After", "1")
	return w.showMessage(c, http.StatusTooManyRequests, message{
		Title: "Too many requests at the same time",
		Text:  []string{"Wait until the others have ended, then try again."},
		Href:  "/", Label: "Go to the start page", Quiet: true,
	})
}

// notice is a line on a page about a completed action. The URL contains only the code of the notice, so that its text
// cannot be forged.
type notice struct {
	Text string
	Bad  bool
}

var notices = map[string]notice{
	"saved":      {Text: "Saved."},
	"unchanged":  {Text: "Nothing was different, so nothing was changed."},
	"key-source": {Text: "Saved. It applies from the next call."},
	"server-ok":  {Text: "The local server answers. Its models are in the list below."},
	"server-names": {Text: "The local server answers. Its models are in the list below, without those whose names " +
		"are too long or have characters other than A-Z, a-z, 0-9 and ._:@/+- in them."},
	"server-silent":   {Bad: true, Text: "The local server does not answer as it should. What is wrong is below."},
	"server-gone":     {Text: "The local server is removed. Its models are no longer offered."},
	"caps":            {Text: "Saved. It applies from the next call."},
	"access":          {Text: "Saved. It applies from the agent's next call."},
	"access-back":     {Text: "The project follows your default again. It applies from the agent's next call."},
	"access-all":      {Text: "Every project now has the same access. It applies from the agent's next call."},
	"revoked-install": {Text: "The install is revoked. Its token no longer works."},
	"revoked-key":     {Text: "The key is revoked. It no longer works."},
	"revoked-link":    {Text: "Revoked. That agent's next call is refused until you link it again."},
	"revoked-links":   {Text: "All links are revoked. Each agent's next call is refused until you link it again."},
	"merged":          {Text: "Merged. The other id still works and leads here."},
	"deleted":         {Text: "The project is deleted."},
	"memory-days":     {Text: "Saved. It also applies to what is stored."},
	"memory-gone":     {Text: "Erased. Conversations that began before are not remembered."},
	"memory-none":     {Bad: true, Text: "There is no such user any more: what was remembered is already gone."},

	"attestation":       {Text: "Saved. It applies from the next attestation."},
	"attestation-ended": {Text: "Saved. It applies from the next attestation. Tokens of what you removed have ended."},
	"play-keys":         {Text: "The keys are stored. They apply from the next attestation."},
	"play-keys-new":     {Text: "The keys are replaced. Tokens that Android installs got with the old ones have ended."},
	"play-keys-gone":    {Text: "The keys are removed. Android installs can no longer attest."},

	"session-closed": {Text: "The session is closed. Its apps and its simulator page are disconnected."},

	"credential-set":  {Text: "The key is stored. Test it to see whether the provider accepts it."},
	"credential-gone": {Text: "The key is removed."},
	"test-ok":         {Text: "The provider accepts the key."},
	"test-refused": {Bad: true, Text: "The provider refuses the key. Copy it again from the provider's site, " +
		"or make a new one there."},
	"test-unreachable": {Bad: true, Text: "The provider could not be reached. Try again later. " +
		"This says nothing about the key."},
	"test-impossible": {Bad: true, Text: "Ask the operator of this backend for help: " +
		"its own encryption key is missing, so your key cannot be read."},

	"undone": {Text: "Undone. The previous values are back."},
	"undo-conflict": {Bad: true, Text: "Not undone: the same settings have been changed again since. " +
		"Undo the later change first, or change them yourself."},
	"undo-gone": {Bad: true,
		Text: "There is nothing to undo: it was undone already, or the old value is no longer offered."},

	"mail-sent": {Text: "The mail is on its way. Open the link in it to confirm the address."},
	"change-sent": {Text: "We sent a link to the new address. " +
		"Open it in a browser where you are signed in to change the address."},
	"verified": {Text: "Thank you, the address is confirmed."},
	"password": {Text: "The new password is saved. You are signed out in all other browsers."},
	"reset":    {Text: "The new password is saved, and you are signed in with it."},
	"passkeys-lost": {Text: "Add a passkey again below. The ones that you have belong to the old address " +
		"of these pages and do not work here."},
	"passkey-added": {Text: "The passkey is added. You can now sign in with it."},
	"passkey-removed": {Text: "The passkey is removed and no longer signs you in. " +
		"You may delete it from your device too."},
	"linked":   {Text: "Linked. You can now sign in with it."},
	"unlinked": {Text: "Unlinked. It no longer signs you in."},
	"browser":  {Text: "That browser is signed out."},
	"browsers": {Text: "All other browsers are signed out."},
}

// notice returns the notice for the code in the query, or nil.
func (c *call) notice() *notice {
	if n, ok := notices[c.URL.Query().Get("done")]; ok {
		return &n
	}
	return nil
}

// done redirects to a path that shows the notice with this code, unless err prevented the change.
func (c *call) done(err error, path, code string) error {
	if err != nil {
		return err
	}
	target, err := url.Parse(path)
	if err != nil {
		return err
	}
	q := target.Query()
	q.Set("done", code)
	target.RawQuery = q.Encode()
	return c.redirect(target.String())
}
