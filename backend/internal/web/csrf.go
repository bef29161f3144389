package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
)

// Names of the hidden fields of forms.
const (
	csrfField = "csrf" // used in every form
	seenField = "seen" // used in the approve and deny forms
)

// csrfToken returns the token that every form of this browser session must send.
func (w *Web) csrfToken(c *call) string { return w.sign("csrf", c.browserID) }

// seenToken proves that the page of this code was shown to this browser session.
func (w *Web) seenToken(c *call, userCode string) string {
	return w.sign("seen", c.browserID, userCode)
}

func (w *Web) csrfOK(c *call) bool { return equal(c.PostFormValue(csrfField), w.csrfToken(c)) }

func (w *Web) seenOK(c *call, userCode string) bool {
	return equal(c.PostFormValue(seenField), w.seenToken(c, userCode))
}

// equal compares in constant time.
func equal(got, want string) bool { return hmac.Equal([]byte(got), []byte(want)) }

// sign returns an HMAC over the parts. A zero byte after each part distinguishes ("ab","c") from ("a","bc").
func (w *Web) sign(purpose string, parts ...string) string {
	mac := hmac.New(sha256.New, w.Key)
	mac.Write([]byte("web/" + purpose))
	for _, p := range parts {
		mac.Write([]byte{0})
		mac.Write([]byte(p))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
