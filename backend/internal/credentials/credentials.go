// Package credentials stores a project's own keys of AI providers, encrypted with a key that is not in the database.
// A stored value is never shown again and is decrypted only for the gateway. The package knows neither grants nor pages
// nor SQL.
package credentials

import (
	"errors"
	"time"
)

// Errors that callers check for.
var (
	ErrNotConfigured   = errors.New("this backend has no key for encrypting credentials")
	ErrUnknownProvider = errors.New("there is no such provider")
	ErrUnknownLink     = errors.New("the link is unknown, used or expired")
	ErrNotSet          = errors.New("the credential is not set")
)

// InvalidError reports a value that does not have the form of the provider's keys. Message never contains the value.
type InvalidError struct{ Message string }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

// Results of a test.
const (
	TestOK          = "ok"
	TestRefused     = "refused"
	TestUnreachable = "unreachable"
)

// Provider is a provider whose keys can be stored.
type Provider struct {
	ID, Name string
	// Example shows the form to people, e.g. "sk-...".
	Example string
}

// Credential describes a credential without its value.
type Credential struct {
	Provider   Provider
	Set        bool
	Hint       string    // the end of the value, e.g. "...wxyz"; empty when not set
	SetAt      time.Time // zero: not set
	SetBy      string    // for people: "you", "you, asked by the agent on laptop"
	TestedAt   time.Time // zero: never
	TestResult string
}

// Link lets the account holder set one credential, once. Its ID is not sufficient: the page also requires a signed-in
// account.
type Link struct {
	ID        string
	Project   string
	Provider  Provider
	ExpiresAt time.Time
	AskedBy   string // for people: "the agent on laptop"; empty: the account holder
}
