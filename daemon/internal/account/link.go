// Package account keeps the account link: auth.json on disk and its snapshot in memory, which follows every
// change of the file, by whomever it was made. It decides whether an install is linked and to which backend; how a
// link comes about, and whether the backend still honours it, is told to it by others.
package account

import (
	"strings"
	"time"
)

// State is what auth.json, and the backend's last word on it, make of this install.
type State string

// The states of a link. Only Linked allows a gated call.
const (
	NotLinked State = "not_linked"
	Linked    State = "linked"
	// Revoked is a link that the backend refused with a 401; the file stays.
	Revoked State = "revoked"
	// Expired is a legacy token whose own expiry has passed.
	Expired State = "expired"
	// Corrupt is a file that does not parse; it counts as not linked and only a login or a logout replaces it.
	Corrupt State = "corrupt"
	// OtherBackend is a link minted by another backend than the one asked for.
	OtherBackend State = "other_backend"
)

// TierFree is the tier of every linked account.
const TierFree = "free_account"

// Link is a snapshot; it never changes after it was handed out. Fields besides State and Detail are set when the file
// parsed.
type Link struct {
	State State
	// Detail says why the state is what it is, where that helps: the parse error of a corrupt file, for instance.
	Detail    string
	AuthToken Secret
	AccountID string
	Tier      string
	LinkedAt  time.Time
	// ExpiresAt is nil for a token that never expires.
	ExpiresAt *time.Time
	Scope     string
	// BackendURL is the backend that minted the token: a URL or "embedded:<id>".
	BackendURL string
	Verified   Verdict
}

// Linked tells whether the token may be used.
func (l Link) Linked() bool { return l.State == Linked }

// Verdict is the backend's last word on the token, kept in memory only. At is zero while it was never asked.
type Verdict struct {
	At time.Time
	OK bool
	// Err says why OK is false, or why the backend could not be asked.
	Err string
}

// sameBackend tells whether a token minted at minted may be sent to url. "embedded:" alone is the embedded backend
// before its id is known and meets every embedded one; who sends a token resolves the id first.
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
