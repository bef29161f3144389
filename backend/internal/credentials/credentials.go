// Package credentials stores a project's own API keys for AI providers, encrypted with a key that is not in the
// database. A stored value is never shown again. It is decrypted only for tests and for calls of the gateway. The
// package does not check grants and contains no pages or SQL.
package credentials

import (
	"errors"
	"time"
)

// Errors that callers check for.
var (
	ErrNotConfigured   = errors.New("this backend has no key for encrypting credentials")
	ErrUnknownProvider = errors.New("no such provider")
	ErrUnknownLink     = errors.New("the link is unknown, used or expired")
	ErrUnreadable      = errors.New("the stored credential cannot be decrypted")
	ErrNotSet          = errors.New("the credential is not set")
)

// InvalidError reports a value that cannot be a key of the provider. Message never contains the value.
type InvalidError struct{ Message string }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

// Results of testing a credential.
const (
	TestOK          = "ok"
	TestRefused     = "refused"
	TestUnreachable = "unreachable"
)

// Provider is an AI provider whose keys can be stored.
type Provider struct {
	ID, Name string
	// Example shows users the form of a key, e.g. "sk-...".
	Example string
}

// Credential describes a credential without revealing its value.
type Credential struct {
	Provider   Provider
	Set        bool
	Hint       string    // the last characters of the value, e.g. "...wxyz"; empty if not set
	SetAt      time.Time // zero if not set
	SetBy      string    // for display: "you", "you, asked by the agent on laptop"
	TestedAt   time.Time // zero if never tested
	TestResult string
}

// Link lets the account holder set one credential once. The ID alone is not sufficient: the account holder must
// also be signed in.
type Link struct {
	ID        string
	Project   string
	Provider  Provider
	ExpiresAt time.Time
	AskedBy   string // for display: "the agent on laptop"; empty for the account holder
}
