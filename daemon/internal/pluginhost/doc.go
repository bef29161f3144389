// Package pluginhost finds, verifies, starts and supervises the adapters. It converts their contract into the daemon's
// types: its Host implements the interfaces of link, session and tools. An adapter starts with the first call that
// needs it, restarts with growing delays after a crash, and is stopped with its whole process group.
//
// The package is independent of the purpose of a call and the shell that made it. In the state directory it uses only
// the embedded backend's directory, the adapters' sockets, and the list, approvals and copies of added adapters.
package pluginhost
