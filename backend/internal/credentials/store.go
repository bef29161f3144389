package credentials

import (
	"context"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Stored is a credential as stored.
type Stored struct {
	AccountID, Project, Provider string
	// SealedFor is the project that the envelope is bound to. It differs from Project when that one was merged into it.
	SealedFor              string
	Sealed, Wrapped, KeyID string
	Hint                   string
	SetAt                  time.Time
	// RequestedBy is the link of the agent that asked for it, or empty. AskedOn is that link's host, read only.
	RequestedBy, AskedOn string
	TestedAt             time.Time // zero: never
	TestResult           string
}

// StoredLink is a paste link as stored, by the hash of its id.
type StoredLink struct {
	Hash                         string
	AccountID, Project, Provider string
	RequestedBy, AskedOn         string // as in Stored
	CreatedAt, ExpiresAt         time.Time
}

// Store stores credentials. Every method is atomic; those that change something also insert the audit entry.
type Store interface {
	// Credentials lists a project's credentials.
	Credentials(ctx context.Context, account, project string) ([]Stored, error)
	// Credential returns ErrNotSet if there is none.
	Credential(ctx context.Context, account, project, provider string) (Stored, error)
	// PutCredential inserts or replaces a credential and deletes the result of an earlier test. With linkHash it
	// consumes that link and copies who asked for the credential. It returns ErrUnknownLink unless the link is live and
	// for this credential.
	PutCredential(ctx context.Context, c Stored, linkHash string, e audit.Entry) error
	// DeleteCredential returns ErrNotSet if there is none.
	DeleteCredential(ctx context.Context, account, project, provider string, e audit.Entry) error
	// MarkTested stores a test's result unless the credential is no longer the one that was tested (c.Sealed).
	MarkTested(ctx context.Context, c Stored, e audit.Entry) error
}

// LinkStore keeps paste links.
type LinkStore interface {
	// AddCredentialLink inserts a link and deletes expired ones, and all but the project's keep-1 newest others.
	AddCredentialLink(ctx context.Context, l StoredLink, keep int, e audit.Entry) error
	// CredentialLink returns ErrUnknownLink unless the link is live at now.
	CredentialLink(ctx context.Context, hash string, now time.Time) (StoredLink, error)
}

// KeyStore supports the rotation of the wrapping key.
type KeyStore interface {
	// CredentialsUnder lists up to limit credentials whose data key is wrapped with a key, in the order of account,
	// project and provider, following after; the zero value comes before all.
	CredentialsUnder(ctx context.Context, keyID string, after Stored, limit int) ([]Stored, error)
	// Rewrap stores a new wrapped data key unless the credential was changed since (wrapped is what was read), and
	// reports whether it did.
	Rewrap(ctx context.Context, c Stored, wrapped string) (bool, error)
	// CredentialKeys counts credentials by the id of their key.
	CredentialKeys(ctx context.Context) (map[string]int, error)
}

// Stores is the storage that New needs.
type Stores interface {
	Store
	LinkStore
	KeyStore
}
