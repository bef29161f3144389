// Package scaffold generates the module through which an app connects to its glasses, writes it into a project without
// overwriting the user's changes, and finds problems in an app's integration. Generation is deterministic: the same
// request produces the same bytes. The package must not depend on sessions, backends or tools.
package scaffold
