// Package e2e tests the main workflow with the real programs: agents, the shim, the daemon, adapters, backends on
// both databases and a browser. It uses only external interfaces: commands, sockets, pages and files.
package e2e
