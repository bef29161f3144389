package storetest

import (
	"testing"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
)

// changedMeanwhile tests that a sign-in fails if the password changes between the check of the old password and the
// start of the browser session. Otherwise a thief who keeps signing in could remain signed in after the change.
func changedMeanwhile(t *testing.T, f *people) {
	ada := f.verified(t, "ada")
	thief, err := f.SignIn(t.Context(), ada.Email, password, "")
	want(t, "the thief's password is right", err, nil)
	open := func(a account.Account) error {
		_, err := f.OpenSession(t.Context(), a.ID, account.Visit{Method: account.ByPassword, PasswordHash: a.PasswordHash})
		return err
	}
	want(t, "before the change", open(thief), nil)
	want(t, "forgot", f.ForgotPassword(t.Context(), ada.Email), nil)
	token := tokenOf(f.mailAll(t)[0].Link)
	owner, err := f.ResetPassword(t.Context(), token, "another correct horse", account.Access{})
	want(t, "reset", err, nil)
	want(t, "the thief after the reset", open(thief), account.ErrBadCredentials)
	want(t, "the owner", open(owner), nil)
	keep := f.open(t, owner, account.ByPassword)
	want(t, "change", f.ChangePassword(t.Context(), ada.ID, "another correct horse", "a third correct horse", keep,
		audit.Person()), nil)
	want(t, "after the change", open(owner), account.ErrBadCredentials)
	f.store.exec("UPDATE accounts SET state = 'suspended' WHERE id = $1", ada.ID)
	want(t, "suspended", open(owner), account.ErrSuspended)
}
