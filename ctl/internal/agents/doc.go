// Package agents registers service-mcp in the configuration files of coding agents. Edits keep everything else in a
// file, including comments and layout. A file that cannot be edited safely is refused, with the text for a person to
// add. The package must not know commands, the daemon or texts for people.
package agents
