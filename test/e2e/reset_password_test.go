//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/test/chromium"
)

// Setting a new password for an account of the embedded backend keeps the account's passkeys unless the user requests
// otherwise.
func TestResetPassword_KeepsPasskeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	code := issueCode(t, &remoteBackend{url: backendURL(t, w)})
	url := "http://" + mustParse(t, code.VerificationURL).Host // pages at localhost redirect there
	browser := newBrowser(t)
	if _, err := chromium.Run(browser, addAuthenticator); err != nil {
		t.Fatal(err)
	}
	status := func(words string) chromedp.Action[chromedp.Void] {
		return until(fmt.Sprintf(`(document.querySelector("main [role=status], main [role=alert]")?.innerText ?? "").includes(%q)`, words))
	}
	run(t, browser, "sign up", chromedp.Navigate(url+"/signup"), chromium.Type("#email", "ada@example.org"),
		chromium.Type("#password", "correct horse battery staple"), chromedp.Click("#accept"),
		chromedp.Click("main button[type=submit]"), until(`!!document.querySelector(".who")`))
	run(t, browser, "add a passkey", chromedp.Navigate(url+"/account/settings"),
		chromium.Type("#passkey-name", "my laptop"), chromium.Type("#passkey-password", "correct horse battery staple"),
		chromedp.Click("form[data-passkey] button"), status("passkey is added"))

	if removed := resetPassword(w); removed != 0 {
		t.Errorf("%d passkeys were removed, want 0", removed)
	}
	run(t, browser, "the browser is signed out", chromedp.Navigate(url+"/account/settings"), until(`location.pathname === "/signin"`))
	run(t, browser, "sign in with the passkey", chromedp.Click("form[data-passkey] button"),
		until(`location.pathname === "/account/settings" && document.body.innerText.includes("with a passkey")`))
	if removed := resetPassword(w, "--remove-passkeys"); removed != 1 {
		t.Errorf("%d passkeys were removed, want 1", removed)
	}
	run(t, browser, "the passkey no longer works", chromedp.Navigate(url+"/signin"),
		chromedp.Click("form[data-passkey] button"), status("was not accepted"))
}

// resetPassword sets a new password for the only account and returns the number of removed passkeys.
func resetPassword(w *world, flags ...string) int {
	w.t.Helper()
	cmd := w.command("servicectl", append([]string{"account", "reset-password", "--stdin", "--json"}, flags...)...)
	cmd.Stdin = strings.NewReader("a whole new passphrase\n")
	out, err := cmd.Output()
	var reset struct{ PasskeysRemoved int }
	if err == nil {
		err = json.Unmarshal(out, &reset)
	}
	if err != nil {
		w.t.Fatalf("reset the password: %v\n%s", err, out)
	}
	return reset.PasskeysRemoved
}
