// Package statefile keeps the small files of the state directory: each is replaced in one step, readable by its owner
// alone, and watched for changes by other programs. It knows bytes, names and modes; what the files mean is the
// business of the packages above it.
package statefile
