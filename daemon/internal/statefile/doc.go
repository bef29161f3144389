// Package statefile reads, replaces and watches the small files of the state directory. It replaces them atomically,
// and only their owner can read them. The package knows bytes, names and modes, but not the meaning of the files.
package statefile
