// Package statefile reads, replaces and watches the small files of the state directory. They are replaced atomically
// and readable by their owner only. It knows bytes, names and modes, not what the files mean.
package statefile
