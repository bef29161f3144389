// Package sessions manages browser-simulator sessions. A session is created or resumed, apps attach to it with one of
// its secrets, and it ends when it is closed or expires.
//
// A session is open from its creation until it is closed or has been inactive for Lifetime. Of all sessions with the
// same account, link, project and platform, one is current: Mint without Fresh returns it. Mint with Fresh creates
// another session and makes it current; the older session stays open until it is closed or expires. Closing a session
// revokes its secrets. A session also ends with its account and with the link that created it.
//
// The package must not depend on SQL, HTTP or sockets. It uses the store and the relay through small interfaces.
package sessions
