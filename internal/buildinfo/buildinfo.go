// Package buildinfo holds the values that the linker sets in every binary (-X).
package buildinfo

// Values set by `make build`. Other builds use the defaults.
var (
	// Version is the release, e.g. "1.4.0", or "dev" if not built by make.
	Version = "dev"
	// Commit is the full source revision, or "unknown" if not built by make.
	Commit = "unknown"
	// BuiltAt is an ISO 8601 UTC time, or "unknown" if not built by make.
	BuiltAt = "unknown"
	// DefaultBackendURL is the production backend of a distribution. If it is empty, the embedded backend is used.
	DefaultBackendURL = ""
	// ReleaseURL is the download address of this distribution's releases. If it is empty, the service does not look
	// for releases.
	ReleaseURL = ""
	// ReleaseKey is the minisign public key of this distribution's releases, one line of base64. It is empty if
	// ReleaseURL is empty.
	ReleaseKey = ""
)
