// Package procgroup ends the processes that a command started: with their group, or with their parent.
package procgroup
