// Package guide holds what people who write apps for glasses must know and what programs can check for them: which
// capability has which commands and events, what an app declares and asks for on each platform, and what makes a spoken
// phrase work. It is data and pure functions; it knows no tool, no session and no file of an app.
package guide
