// Package checks enforces the rules of this repository as tests: which packages may import which, that every package
// has a doc comment, how long files and lines may be, and that no path of a developer's machine is tracked. It checks
// the tree, not the behaviour of the code.
package checks
