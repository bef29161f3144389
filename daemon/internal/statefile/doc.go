// Package statefile reads, replaces and watches the small files of the state directory. It replaces them atomically,
// and only their owner can read them. The package handles bytes, names and modes, but does not interpret the files.
package statefile
