package account

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/service-dev/service/backend/internal/mail"
)

// The words of the account's mail.

const lostHold = "If you cannot sign in, ask for a new password on the sign-in page."

const notYou = "If you did not ask for this, do not open the link; nothing changes then."

func verificationMail(a Account, url string) mail.Message {
	return mail.Message{
		AccountID: a.ID, To: a.Email, Subject: "Confirm your e-mail address",
		Text:     []string{"Somebody signed up with this e-mail address. If that was you, confirm that the address is yours:"},
		LinkText: "Confirm the address", Link: url,
		After: []string{"The link works once, for 24 hours, in a browser that is signed in to the account.",
			"If you did not sign up, there is nothing to confirm. To take the account over, ask for a new password on the sign-in page."},
	}
}

func signUpMail(email, url string) mail.Message {
	return mail.Message{
		To: email, Subject: "Finish signing up",
		Text:     []string{"Somebody signed up with this e-mail address. If that was you, finish here with the password that you chose:"},
		LinkText: "Finish signing up", Link: url,
		After: []string{"The link works once, for 24 hours.", notYou},
	}
}

func haveAccountMail(a Account, url string) mail.Message {
	return mail.Message{
		AccountID: a.ID, To: a.Email, Subject: "You have an account already",
		Text:     []string{"Somebody tried to sign up with this e-mail address, which has an account. Nothing was changed. If that was you, sign in instead:"},
		LinkText: "Sign in", Link: url,
		After: []string{"If you do not know the password any more, ask for a new one on that page. If that was not you, there is nothing to do."},
	}
}

func addressWantedMail(owner Account) mail.Message {
	return mail.Message{
		AccountID: owner.ID, To: owner.Email, Subject: "Somebody wanted your e-mail address for another account",
		Text: []string{"The person of another account asked to use this e-mail address, which is your account's. Nothing was changed.",
			"If that was you, change the address of this account or delete it first. If not, there is nothing to do."},
	}
}

func newAddressMail(a Account, email, url string) mail.Message {
	return mail.Message{
		AccountID: a.ID, To: email, Subject: "Confirm your new e-mail address",
		Text:     []string{"An account is about to get this e-mail address. If you asked for that, confirm it:"},
		LinkText: "Use this address", Link: url,
		After: []string{"The link works once, for 24 hours, in a browser that is signed in to the account.", notYou},
	}
}

func resetMail(a Account, url string) mail.Message {
	return mail.Message{
		AccountID: a.ID, To: a.Email, Subject: "Set a new password",
		Text:     []string{"Somebody asked for a new password for your account. If that was you, set it here:"},
		LinkText: "Set a new password", Link: url,
		After: []string{"The link works once, for one hour. All browsers are signed out then.", notYou},
	}
}

func emailChangedMail(a Account) mail.Message {
	return mail.Message{
		AccountID: a.ID, To: a.Email, Subject: "Your account has another e-mail address now",
		Text: []string{"The e-mail address of your account was changed. This address no longer signs in.",
			"If that was not you, write to whoever runs the service at once."},
	}
}

func passwordChangedMail(a Account) mail.Message {
	return mail.Message{
		AccountID: a.ID, To: a.Email, Subject: "Your password was changed",
		Text: []string{"The password of your account was changed and other browsers were signed out.",
			"If that was not you, ask for a new password on the sign-in page."},
	}
}

func passkeyAddedMail(a Account) mail.Message {
	return mail.Message{
		AccountID: a.ID, To: a.Email, Subject: "Your account has a new passkey",
		Text: []string{"A passkey was added to your account. It signs in from now on.",
			"If that was not you, remove it in the account's settings and sign out all other browsers there. " + lostHold},
	}
}

func identityLinkedMail(a Account, provider string) mail.Message {
	return mail.Message{
		AccountID: a.ID, To: a.Email, Subject: "Your account signs in with another provider now",
		Text: []string{"The sign-in provider “" + provider + "” was linked to your account. It signs in from now on.",
			"If that was not you, unlink it in the account's settings and sign out all other browsers there. " + lostHold},
	}
}

// unlinked breaks what mail programs make links of: a scheme, and a dot before a letter as in a name of a host.
var unlinked = regexp.MustCompile(`(:)(//)|([.。．｡])(\pL)`)

// theirs is what an install says of itself, in quotes that it cannot leave.
func theirs(s string) string {
	if s == "" {
		return "not told"
	}
	s = strings.NewReplacer("“", "'", "”", "'", `"`, "'").Replace(s)
	return "“" + unlinked.ReplaceAllString(s, "[$1$3]$2$4") + "”"
}

func newLinkMail(a Account, l NewLink, page string) mail.Message {
	return mail.Message{
		AccountID: a.ID, To: a.Email, Subject: "A new agent is linked to your account",
		Text: []string{"An agent was linked to your account and may act in your name from now on. This is what it says of itself:",
			"Computer: " + theirs(l.Host), "System: " + theirs(l.OS), "Program: " + theirs(l.Client), "Network address: " + cmp.Or(l.Address, "not told"),
			"Time: " + l.At.UTC().Format("2006-01-02 15:04 UTC"),
			"If you approved that, there is nothing to do. If not, revoke it on your account's page, and change your password:"},
		LinkText: "See linked agents and revoke", Link: page,
	}
}

func deletedMail(a Account) mail.Message {
	return mail.Message{
		AccountID: a.ID, To: a.Email, Subject: "Your account is deleted",
		Text: []string{"Your account and everything that belonged to it were deleted. There is no way back.",
			"You may sign up with this address again at any time."},
	}
}
