// Package agents registers service-mcp with the coding agents of this machine, each in its own configuration file. It
// changes only the bytes of its own entry: comments, order and whatever it does not know stay as they are, and a file
// that it cannot change so is refused with the text to paste. It must not know commands, the daemon or words for people.
package agents
