package account

import (
	"strings"

	"github.com/service-dev/service/backend/internal/audit"
)

// SignedUp returns the entry of a new account, which was signed up for by a method.
func (a Account) SignedUp(method string) audit.Entry {
	return audit.New(a.CreatedAt, a.ID, audit.Person(), "account.created", "", "signed up with "+methodName(method))
}

// SignedIn returns the entry of a new browser session. It contains no address, because entries are kept much longer
// than sessions.
func (b BrowserSession) SignedIn(accountID string) audit.Entry {
	summary := "with " + methodName(b.Method)
	if b.Browser != "" {
		summary += " in " + b.Browser
	}
	return audit.New(b.CreatedAt, accountID, audit.Person(), "account.signed_in", "", summary)
}

// methodName returns the name of a sign-in method for the account's holder.
func methodName(method string) string {
	switch method {
	case ByPassword:
		return "a password"
	case ByPasskey:
		return "a passkey"
	case ByMail:
		return "a mailed link"
	}
	return strings.TrimPrefix(method, ByOIDC)
}
