// Package statefile reads, replaces and watches the small files of the state directory. They are replaced atomically
// and readable by their owner only. The package knows bytes, names and modes, but not the meaning of the files.
package statefile
