// Package checks enforces the rules of this repository as tests: which packages may import which, that every package
// has a doc comment, the maximum length of files and lines, and that files do not contain paths of a developer's
// machine. It checks the source tree, not the behaviour of the code.
package checks
