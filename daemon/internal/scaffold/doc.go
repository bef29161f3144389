// Package scaffold generates the module by which an app connects to its glasses, writes it into a project without
// overwriting the person's own changes, and finds problems of an integration. Generation is deterministic: the same
// request gives the same bytes. The package knows files and the glasses' protocol; it must not know sessions, backends
// or tools.
package scaffold
