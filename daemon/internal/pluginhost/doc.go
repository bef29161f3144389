// Package pluginhost finds, verifies, starts and supervises the adapters, and converts their contract into the daemon's
// types: its Host implements the small interfaces of link, session and tools. An adapter starts with the first call
// that needs it, restarts with growing delays after a crash, and is stopped with its whole process group.
//
// The package knows neither what a call is for nor which shell it came from, and nothing of the state directory
// beyond the directory in which the embedded backend stores its data.
package pluginhost
