// Package link implements the device authorization grant (RFC 8628) and the tokens it issues. It contains no HTTP, SQL
// or page code.
//
// A device code moves through these states. Each step is one conditional change in the store:
//
//	pending --Approve--> approved --Poll--> redeemed (token minted in the same transaction)
//	pending --Deny-----> denied
//	pending, approved --time--> expired (never stored: it follows from the clock)
//
// A code approved before its expiry can still be redeemed for a short grace period afterwards. A redeemed code is
// unknown to later polls. If it is polled again and its token is still unused a minute later, the client never received
// the token, which is then revoked. Polling too fast raises the code's poll interval, but never delays a code that is
// already approved.
package link
