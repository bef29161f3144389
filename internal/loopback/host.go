package loopback

import (
	"net/netip"
	"strings"
)

// IsHost reports whether every program that connects to host reaches this machine: localhost or a loopback address.
// host has no port. Secrets may be sent to such a host over plain HTTP. Names below localhost are not included: only
// browsers are certain to resolve them to this machine (RFC 6761, section 6.3), while other programs may ask a DNS
// server.
func IsHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && ip.Unmap().IsLoopback()
}

// IsBrowserHost reports whether a browser that opens a URL with this host reaches this machine. In addition to
// IsHost, it accepts names below localhost and a trailing dot. Use it for the origins of pages and for URLs that
// users open.
func IsBrowserHost(host string) bool {
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	sub, isBelow := strings.CutSuffix(name, ".localhost")
	return IsHost(name) || isBelow && sub != "" && !strings.HasPrefix(sub, ".")
}
