// Package pluginhost finds, verifies, starts and supervises the adapters, and converts their contract into the daemon's
// types: its Host implements the small interfaces of link, session and tools. An adapter starts with the first call
// that needs it, restarts with growing delays after a crash, and is stopped with its whole process group.
//
// The package knows neither the purpose of a call nor the shell it came from. Of the state directory, it knows only
// the directory in which the embedded backend stores its data.
package pluginhost
