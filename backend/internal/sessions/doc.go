// Package sessions manages browser-simulator sessions: they are created or resumed, apps attach with one of their
// secrets, and they are closed or expire.
//
// A session is open from its creation until it is closed or was not active for Lifetime. Of all sessions of one
// (account, link, project, platform) one is current: Mint without Fresh returns it, and with Fresh creates another one
// and makes that current; the older one stays open until it is closed or expires. Closing revokes the secrets. A
// session ends with the link that created it, and with its account.
//
// The package must not know SQL, HTTP or sockets: the store and the relay are behind small interfaces.
package sessions
