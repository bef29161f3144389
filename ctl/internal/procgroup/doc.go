// Package procgroup controls how long the processes that a command starts live: it ends them together with the other
// processes of their group, or with their parent.
package procgroup
