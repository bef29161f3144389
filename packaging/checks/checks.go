// Package checks keeps the rules of the house as tests: which room may import which, that every package says what it
// is for, and that no path of one machine is written down. It knows the tree, not what the code does.
package checks
