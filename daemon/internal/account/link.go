// Package account stores the account link: auth.json on disk and a snapshot in memory that follows every change of the
// file. It decides whether an install is linked and to which backend. Other packages create links and ask the backend
// whether a link is still valid.
package account

import (
	"strings"
	"time"
)

// State is the state of the link, determined by auth.json and the backend's last verdict.
type State string

// The states of a link. Only Linked allows a gated call.
const (
	NotLinked State = "not_linked"
	Linked    State = "linked"
	// Revoked means that the backend rejected the token with a 401. The file is kept.
	Revoked State = "revoked"
	// Expired means that a legacy token is past its own expiry time.
	Expired State = "expired"
	// Corrupt means that the file cannot be parsed. The install is then not linked, and only a login or a logout
	// replaces the file.
	Corrupt State = "corrupt"
	// OtherBackend means that another or an unknown backend issued the link.
	OtherBackend State = "other_backend"
)

// TierFree is the tier of every linked account.
const TierFree = "free_account"

// Link is an immutable snapshot. Fields other than State and Detail are set only if the file could be parsed.
type Link struct {
	State State
	// Detail explains the state where necessary, e.g. with the parse error of a corrupt file.
	Detail    string
	AuthToken Secret
	AccountID string
	Tier      string
	LinkedAt  time.Time
	// ExpiresAt is nil for a token that never expires.
	ExpiresAt *time.Time
	Scope     string
	// BackendURL is the backend that issued the token: a URL or "embedded:<id>".
	BackendURL string
	Verified   Verdict
}

// Linked reports whether the token may be used.
func (l Link) Linked() bool { return l.State == Linked }

// Verdict is the backend's last verdict on the token, kept in memory only. At is zero if the backend was never asked.
type Verdict struct {
	At time.Time
	OK bool
	// Err is the reason why OK is false, or why the backend could not be reached.
	Err string
}

// sameBackend reports whether a token issued by minted may be sent to url. "embedded:" without an ID matches every
// embedded backend, because the ID may not be known yet; a caller that sends a token resolves the ID first.
func sameBackend(minted, url string) bool {
	minted, url = strings.TrimRight(minted, "/"), strings.TrimRight(url, "/")
	if url == "" {
		url = embedded
	}
	if minted == "" {
		minted = embedded
	}
	if url == embedded || minted == embedded {
		return strings.HasPrefix(minted, embedded) && strings.HasPrefix(url, embedded)
	}
	return minted == url
}

const embedded = "embedded:"
