// Package guide contains what authors of apps for glasses need to know and what programs can check for them: the
// commands and events of each capability, what an app declares and requests on each platform, and which spoken phrases
// work. It is data and pure functions; it does not know tools, sessions or an app's files.
package guide
