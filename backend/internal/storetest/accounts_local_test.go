package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

// replacedPassword tests that the owner of the database can set a password without the old one. The call ends browser
// sessions and mailed links, and revokes only the requested access, even if the address is not verified.
func replacedPassword(t *testing.T, f *people) {
	for i, revoke := range []account.Access{{}, {Links: true}, {Passkeys: true}, {Links: true, Passkeys: true}} {
		ada := f.signUp(t, "ada"+string(rune('a'+i)))
		f.passkey(t, ada.ID, "phone")
		token, cookie := f.install(t, ada.ID), f.open(t, ada, account.ByPassword)
		f.box.take() // the mail about the previous password
		moved := "moved" + ada.Email
		want(t, "change the address", f.ChangeEmail(t.Context(), ada.ID, moved, password, audit.Person()), nil)
		address := f.token(t, moved, "/verify")
		mailed := tokenOf(must(f.ResetLink(t.Context(), ada.Email, audit.Operator()))(t))
		_, ended, err := f.ReplacePassword(t.Context(), ada.Email, "another password", revoke, audit.Operator())
		want(t, "replace", err, nil)
		count := map[bool]int{true: 1}
		if ended != (account.Ended{Browsers: 1, Links: count[revoke.Links], Passkeys: count[revoke.Passkeys]}) {
			t.Errorf("%+v: ended %+v, want 1 browser and what was to be revoked", revoke, ended)
		}
		want(t, "the browser", errOf(f.FindSession(t.Context(), cookie)), account.ErrNoSession)
		want(t, "the mailed link", errOf(f.ResetPassword(t.Context(), mailed, "a third password", account.Access{})),
			account.ErrBadToken)
		want(t, "the mailed link to a new address", f.Verify(t.Context(), ada.ID, address), account.ErrBadToken)
		want(t, "the old password", errOf(f.SignIn(t.Context(), ada.Email, password, "")), account.ErrBadCredentials)
		want(t, "the new password", errOf(f.SignIn(t.Context(), ada.Email, "another password", "")), nil)
		_, err = f.links.Authenticate(t.Context(), token)
		if revoked := errors.Is(err, link.ErrRevoked); revoked != revoke.Links {
			t.Errorf("%+v: the link reports %v, want ErrRevoked only if links were revoked", revoke, err)
		}
		keys, err := f.store.PasskeyHolder(t.Context(), ada.ID)
		if err != nil || (len(keys.Passkeys) == 0) != revoke.Passkeys {
			t.Errorf("%+v: %d passkeys remain (%v), want only those not removed", revoke, len(keys.Passkeys), err)
		}
		list := must(f.Overviews(t.Context(), ""))(t)
		if !slices.Contains(list, account.Overview{ID: ada.ID, Email: ada.Email, Links: 1 - count[revoke.Links],
			Passkeys: 1 - count[revoke.Passkeys]}) || len(list) != i+1 {
			t.Errorf("%+v: the accounts are %+v", revoke, list)
		}
	}
	for email, wanted := range map[string]string{" ADAc@example.org": "adac@example.org", "eve@example.org": "", " ": ""} {
		list, err := f.Overviews(t.Context(), email)
		if err != nil || (len(list) == 1) != (wanted != "") || len(list) > 1 || wanted != "" && list[0].Email != wanted {
			t.Errorf("the accounts with the address %q are %+v (%v), want %q", email, list, err, wanted)
		}
	}
	replace := func(email, password string) error {
		_, _, err := f.ReplacePassword(t.Context(), email, password, account.Access{}, audit.Operator())
		return err
	}
	want(t, "an unknown address", replace("eve@example.org", "another password"), account.ErrNotFound)
	eve := f.signUp(t, "eve")
	want(t, "a short password", replace(eve.Email, "short"), account.ErrBadPassword)
	f.store.exec("UPDATE accounts SET state = 'suspended' WHERE id = $1", eve.ID)
	want(t, "a suspended account", replace(eve.Email, "another password"), account.ErrSuspended)
}

// guessedBefore tests that a new password is accepted immediately, even if the user has used up all guesses.
func guessedBefore(t *testing.T, f *people) {
	ada := f.signUp(t, "ada")
	var refused *account.TooManyGuessesError
	for range 20 {
		err := errOf(f.SignIn(t.Context(), ada.Email, "a wrong password", ""))
		if errors.As(err, &refused) {
			break
		}
	}
	if refused == nil {
		t.Fatal("the guesses are not limited")
	}
	_, _, err := f.ReplacePassword(t.Context(), ada.Email, "another password", account.Access{}, audit.Operator())
	want(t, "replace", err, nil)
	want(t, "the new password", errOf(f.SignIn(t.Context(), ada.Email, "another password", "")), nil)
}
