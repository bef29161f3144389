// Package buildinfo holds what the linker writes into every binary (-X).
package buildinfo

// Set by `make build`; other builds have the defaults.
var (
	// Version is the release, e.g. "1.4.0"; "dev" when not built by make.
	Version = "dev"
	// Commit is the full source revision; "unknown" when not built by make.
	Commit = "unknown"
	// BuiltAt is an ISO 8601 UTC time; "unknown" when not built by make.
	BuiltAt = "unknown"
	// DefaultBackendURL is the production backend of a distribution; empty selects the embedded backend.
	DefaultBackendURL = ""
)
