// Package link implements the device authorization grant (RFC 8628) and the tokens it issues. It knows no HTTP, no SQL
// and no page.
//
// A device code moves through these states, each step one conditional change in the store:
//
//	pending --Approve--> approved --Poll--> redeemed (token minted in the same transaction)
//	pending --Deny-----> denied
//	pending, approved --time--> expired (never stored: it follows from the clock)
//
// An approval made within the window is honoured for a short grace after it. A redeemed code is unknown to whoever
// polls it again; if that happens and the token is still unused a minute later, nobody received it and it is revoked.
// Polling too fast raises the code's interval and never delays an approved one.
package link
