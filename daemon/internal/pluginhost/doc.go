// Package pluginhost finds, verifies, launches and supervises the adapters, and turns their contract into the daemon's
// vocabulary: its Host satisfies the small interfaces of link and session. An adapter is started when it is first
// needed, started again with growing pauses after a crash, and taken away with its whole process group.
//
// It must not know what a call is for, which shell asked, or anything of the state directory beyond the directory that
// the embedded backend is told to keep its data in.
package pluginhost
