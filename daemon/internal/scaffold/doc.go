// Package scaffold generates the module by which an app connects to its glasses, writes it into a project without
// taking anything from the person, and finds what is wrong with an integration. Generating is pure: the same request
// gives the same bytes. It knows files and the glasses' vocabulary; it must not know sessions, backends or tools.
package scaffold
