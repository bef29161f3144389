package credentials

import (
	"context"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Stored is a stored credential.
type Stored struct {
	AccountID, Project, Provider string
	// SealedFor is the project for which the value was encrypted. It differs from Project if the credential moved to
	// Project in a merge.
	SealedFor              string
	Sealed, Wrapped, KeyID string
	Hint                   string
	SetAt                  time.Time
	// RequestedBy is the link of the agent that requested the credential, or empty. AskedOn is the host of that link; it
	// is set by reads and ignored by writes.
	RequestedBy, AskedOn string
	TestedAt             time.Time // zero if never tested
	TestResult           string
}

// StoredLink is a stored paste link, identified by the hash of its ID.
type StoredLink struct {
	Hash                         string
	AccountID, Project, Provider string
	RequestedBy, AskedOn         string // as in Stored
	CreatedAt, ExpiresAt         time.Time
}

// Store stores credentials. Every method is atomic. Methods that change a credential also insert the audit entry.
type Store interface {
	// Credentials lists a project's credentials.
	Credentials(ctx context.Context, account, project string) ([]Stored, error)
	// Credential returns ErrNotSet if the credential is not set.
	Credential(ctx context.Context, account, project, provider string) (Stored, error)
	// PutCredential inserts or replaces a credential and deletes the result of any earlier test. If linkHash is not
	// empty, it also consumes that link and copies who requested the credential. It returns ErrUnknownLink unless the
	// link is valid and is for this credential.
	PutCredential(ctx context.Context, c Stored, linkHash string, e audit.Entry) error
	// DeleteCredential returns ErrNotSet if the credential is not set.
	DeleteCredential(ctx context.Context, account, project, provider string, e audit.Entry) error
	// MarkTested stores the result of a test, unless the credential has been replaced since the test (c.Sealed
	// differs).
	MarkTested(ctx context.Context, c Stored, e audit.Entry) error
}

// LinkStore stores paste links.
type LinkStore interface {
	// AddCredentialLink inserts a link. It deletes expired links, and the project's oldest links beyond keep.
	AddCredentialLink(ctx context.Context, l StoredLink, keep int, e audit.Entry) error
	// CredentialLink returns ErrUnknownLink unless the link is valid at now.
	CredentialLink(ctx context.Context, hash string, now time.Time) (StoredLink, error)
}

// KeyStore supports rotating the wrapping key.
type KeyStore interface {
	// CredentialsUnder lists up to limit credentials whose data key is encrypted with keyID, ordered by account,
	// project and provider. It starts after the given credential; the zero value starts at the beginning.
	CredentialsUnder(ctx context.Context, keyID string, after Stored, limit int) ([]Stored, error)
	// Rewrap stores the data key of c if the one in the database still equals wrapped, and reports whether it did.
	Rewrap(ctx context.Context, c Stored, wrapped string) (bool, error)
	// CredentialKeys returns the number of credentials per key ID.
	CredentialKeys(ctx context.Context) (map[string]int, error)
}

// Stores combines the stores that New needs.
type Stores interface {
	Store
	LinkStore
	KeyStore
}
