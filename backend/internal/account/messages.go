package account

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/service-dev/service/backend/internal/mail"
)

// Texts of the mails to account holders.

const howToRecover = "If you cannot sign in, ask for a new password on the sign-in page."

const ifNotYou = "If you did not request this, do not open the link. Nothing will change."

// toOwner returns a mail to the account's address.
func toOwner(a Account, subject string, text ...string) mail.Message {
	return mail.Message{AccountID: a.ID, To: a.Email, Subject: subject, Text: text}
}

// withLink adds a link and the paragraphs after it to the mail.
func withLink(m mail.Message, linkText, url string, after ...string) mail.Message {
	m.LinkText, m.Link, m.After = linkText, url, after
	return m
}

func verificationMail(a Account, url string) mail.Message {
	return withLink(toOwner(a, "Confirm your e-mail address",
		"Somebody signed up with this e-mail address. If that was you, confirm that the address is yours:"),
		"Confirm the address", url,
		"The link works once, for 24 hours, in a browser that is signed in to the account.",
		"If you did not sign up, there is nothing to confirm. To take over the account, ask for a new password on "+
			"the sign-in page.")
}

func signUpMail(email, url string) mail.Message {
	return mail.Message{
		To: email, Subject: "Finish signing up",
		Text: []string{"Somebody signed up with this e-mail address. If that was you, finish here with the password " +
			"that you chose:"},
		LinkText: "Finish signing up", Link: url,
		After: []string{"The link works once, for 24 hours.", ifNotYou},
	}
}

func haveAccountMail(a Account, url string) mail.Message {
	return withLink(toOwner(a, "You have an account already",
		"Somebody tried to sign up with this e-mail address, which has an account. Nothing has changed. "+
			"If that was you, sign in instead:"),
		"Sign in", url,
		"If you have forgotten the password, ask for a new one on that page. If that was not "+
			"you, there is nothing to do.")
}

func addressWantedMail(owner Account) mail.Message {
	return toOwner(owner, "Somebody tried to use your e-mail address for another account",
		"The owner of another account asked to use this e-mail address, which belongs to your account. "+
			"Nothing was changed.",
		"If that was you, change the address of this account or delete it first. If not, there is nothing to do.")
}

func newAddressMail(a Account, email, url string) mail.Message {
	return mail.Message{
		AccountID: a.ID, To: email, Subject: "Confirm your new e-mail address",
		Text:     []string{"An account is about to change to this e-mail address. If you requested that, confirm it:"},
		LinkText: "Use this address", Link: url,
		After: []string{"The link works once, for 24 hours, in a browser that is signed in to the account.", ifNotYou},
	}
}

func resetMail(a Account, url string) mail.Message {
	return withLink(toOwner(a, "Set a new password",
		"Somebody requested a new password for your account. If that was you, set it here:"),
		"Set a new password", url,
		"The link works once, for one hour. Using it signs out all browsers.", ifNotYou)
}

func emailChangedMail(a Account) mail.Message {
	return toOwner(a, "The e-mail address of your account has changed",
		"The e-mail address of your account was changed. You can no longer sign in with this address.",
		"If that was not you, contact the operator of the service immediately.")
}

func passwordChangedMail(a Account) mail.Message {
	return toOwner(a, "Your password was changed",
		"The password of your account was changed and other browsers were signed out.",
		"If that was not you, ask for a new password on the sign-in page.")
}

func passkeyAddedMail(a Account) mail.Message {
	return toOwner(a, "Your account has a new passkey",
		"A passkey was added to your account. It can now be used to sign in.",
		"If that was not you, remove it in the account's settings and sign out all other browsers there. "+howToRecover)
}

func identityLinkedMail(a Account, provider string) mail.Message {
	return toOwner(a, "A new way to sign in to your account",
		"The sign-in provider “"+provider+"” was linked to your account. You can now sign in with it.",
		"If that was not you, unlink it in the account's settings and sign out all other browsers there. "+howToRecover)
}

// linkMarks matches the characters by which mail programs recognise links: "://", and a dot followed by a letter, as in
// a host name.
var linkMarks = regexp.MustCompile(`(:)(//)|([.。．｡])(\pL)`)

// quoteUntrusted quotes text that an install reported about itself. It breaks up links and replaces characters that
// would close the quotes.
func quoteUntrusted(s string) string {
	if s == "" {
		return "not reported"
	}
	s = strings.NewReplacer("“", "'", "”", "'", `"`, "'").Replace(s)
	return "“" + linkMarks.ReplaceAllString(s, "[$1$3]$2$4") + "”"
}

func newLinkMail(a Account, l NewLink, page string) mail.Message {
	return withLink(toOwner(a, "A new agent is linked to your account",
		"An agent was linked to your account and can now act on your behalf. This is what it "+
			"says of itself:",
		"Computer: "+quoteUntrusted(l.Host), "System: "+quoteUntrusted(l.OS),
		"Program: "+quoteUntrusted(l.Client), "Network address: "+cmp.Or(l.Address, "not reported"),
		"Time: "+l.At.UTC().Format("2 Jan 2006, 15:04 UTC"),
		"If you approved that, there is nothing to do. If not, revoke it on your account's page, and change your "+
			"password:"),
		"See linked agents and revoke", page)
}

func spendingMail(a Account, text, page string) mail.Message {
	return withLink(toOwner(a, "Most of your AI credit or of a cap is spent", text,
		"You get this mail at most once a day for each cap and for the balance."),
		"See what was spent", page)
}

func deletedMail(a Account) mail.Message {
	return toOwner(a, "Your account is deleted",
		"Your account and everything that belonged to it were deleted. This cannot be undone.",
		"You can sign up with this address again at any time.")
}
