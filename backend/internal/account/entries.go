package account

import (
	"strings"

	"github.com/service-dev/service/backend/internal/audit"
)

// SignedUp returns the audit entry for a new account. method is the sign-in method that was used.
func (a Account) SignedUp(method string) audit.Entry {
	return audit.New(a.CreatedAt, a.ID, audit.Person(), "account.created", "", "signed up with "+methodName(method))
}

// SignedIn returns the audit entry for a new browser session. It omits the network address, because entries are kept
// much longer than sessions.
func (b BrowserSession) SignedIn(accountID string) audit.Entry {
	summary := "with " + methodName(b.Method)
	if b.Browser != "" {
		summary += " in " + b.Browser
	}
	return audit.New(b.CreatedAt, accountID, audit.Person(), "account.signed_in", "", summary)
}

// methodName returns the name of a sign-in method as shown to the user.
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
