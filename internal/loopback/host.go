package loopback

import (
	"net/netip"
	"strings"
)

// IsHost reports whether host is this machine for every program: localhost or a loopback address. host has no port.
// Secrets may be sent to such a host over plain HTTP. Names below localhost are not included, because only browsers are
// certain to resolve them to this machine (RFC 6761, section 6.3). Other programs may ask a DNS server.
func IsHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && ip.Unmap().IsLoopback()
}

// IsBrowserHost reports whether a browser that opens a URL with this host reaches this machine. In addition to the
// hosts of IsHost, it accepts names below localhost and a trailing dot. Use it for the origins of pages and for URLs
// that users open.
func IsBrowserHost(host string) bool {
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	sub, isBelow := strings.CutSuffix(name, ".localhost")
	return IsHost(name) || isBelow && sub != "" && !strings.HasPrefix(sub, ".")
}
