// Package scaffold generates the module through which an app connects to its glasses, writes it into a project without
// overwriting the user's own changes, and finds problems of an integration. Generation is deterministic: the same
// request produces the same bytes. The package knows files and the protocol of the glasses; it must not know sessions,
// backends or tools.
package scaffold
