// Package guide contains facts for authors of apps for glasses, and checks of them for programs: the commands and
// events of each capability, the declarations and requests that each platform requires, and which spoken phrases work.
// It consists of data and pure functions, and is independent of tools, sessions and an app's files.
package guide
