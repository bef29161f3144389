package httpjson

import (
	"net"
	"net/http"
)

// PeerIP returns the address of the connection, which may be a proxy's. It never trusts a header.
func PeerIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
