// Package e2e proves the main job with the real programs: agents, the shim, the daemon, adapters, backends on both
// databases and a browser. It knows the outside of things only: commands, sockets, pages and files.
package e2e
