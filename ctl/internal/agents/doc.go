// Package agents registers service-mcp in the configuration files of coding agents. Edits keep everything else in a
// file, including comments and layout. If a file cannot be edited safely, the package returns an error and the text to
// add by hand. It must not depend on commands, the daemon or texts for users.
package agents
