// Package guide contains what authors of apps for glasses need to know and what programs can check for them: the
// commands and events of each capability, the declarations and requests that each platform requires, and which spoken
// phrases work. It consists of data and pure functions and is independent of tools, sessions and an app's files.
package guide
