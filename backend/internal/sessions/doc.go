// Package sessions is the life of a browser-simulator session: minted or resumed, attached to by apps that hold one of
// its secrets, closed or expired.
//
// A session is open from its mint until someone closes it or nobody was active for Lifetime. Of all sessions of one
// (account, link, project, platform) one is current: Mint without Fresh gives that one again, Fresh mints another and
// makes it current; the older one stays open until it is closed or expires. Closing revokes its secrets. A session
// ends with the link that minted it, and with its account.
//
// The package must not know SQL, HTTP or sockets: the store and the live side stand behind small interfaces.
package sessions
