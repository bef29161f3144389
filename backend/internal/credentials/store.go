package credentials

import (
	"context"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Stored is a credential as it lies in the store.
type Stored struct {
	AccountID, Project, Provider string
	// SealedFor is the project that the envelope is bound to. It differs from Project when that one was merged into it.
	SealedFor              string
	Sealed, Wrapped, KeyID string
	Hint                   string
	SetAt                  time.Time
	// RequestedBy is the link of the agent that asked; empty: nobody did. AskedOn is that link's host, read only.
	RequestedBy, AskedOn string
	TestedAt             time.Time // zero: never
	TestResult           string
}

// StoredLink is a paste link; its id is kept as a hash only.
type StoredLink struct {
	Hash                         string
	AccountID, Project, Provider string
	RequestedBy, AskedOn         string // as in Stored
	CreatedAt, ExpiresAt         time.Time
}

// Store keeps credentials. Every method is atomic; those that change something write the entry with it.
type Store interface {
	// Credentials lists a project's.
	Credentials(ctx context.Context, account, project string) ([]Stored, error)
	// Credential answers ErrNotSet.
	Credential(ctx context.Context, account, project, provider string) (Stored, error)
	// PutCredential sets or replaces one and forgets what a test of the former said. With linkHash it uses up that link,
	// which must be live and for this very credential, and takes over who asked; else it is ErrUnknownLink.
	PutCredential(ctx context.Context, c Stored, linkHash string, e audit.Entry) error
	// DeleteCredential answers ErrNotSet.
	DeleteCredential(ctx context.Context, account, project, provider string, e audit.Entry) error
	// MarkTested keeps a test's result unless the credential is no longer the one that was tested (c.Sealed).
	MarkTested(ctx context.Context, c Stored, e audit.Entry) error
}

// LinkStore keeps paste links.
type LinkStore interface {
	// AddCredentialLink stores a link, drops those that are over, and of the project's live ones all but the keep newest.
	AddCredentialLink(ctx context.Context, l StoredLink, keep int, e audit.Entry) error
	// CredentialLink answers ErrUnknownLink unless it is live at now.
	CredentialLink(ctx context.Context, hash string, now time.Time) (StoredLink, error)
}

// KeyStore serves the change of the wrapping key.
type KeyStore interface {
	// CredentialsUnder lists up to limit credentials whose data key is under the key of an id, in the order of account,
	// project and provider, from the one that follows after; the zero value is before all.
	CredentialsUnder(ctx context.Context, keyID string, after Stored, limit int) ([]Stored, error)
	// Rewrapped stores a new wrapping, unless the credential was set anew since (wrapped is what was read); it tells
	// whether it did.
	Rewrapped(ctx context.Context, c Stored, wrapped string) (bool, error)
	// CredentialKeys counts credentials by the id of their key.
	CredentialKeys(ctx context.Context) (map[string]int, error)
}

// Stores is everything that New needs of the database.
type Stores interface {
	Store
	LinkStore
	KeyStore
}
