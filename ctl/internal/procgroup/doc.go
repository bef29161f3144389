// Package procgroup ends the processes that a command started, either together with their group or
// when their parent exits.
package procgroup
