// Package statefile reads, replaces and watches the small files of the state directory. Files are replaced atomically,
// and only their owner can read them. The package does not interpret their content.
package statefile
