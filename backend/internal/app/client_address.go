package app

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// clientAddresses finds the address of the client that sent a request.
type clientAddresses struct {
	trusted []netip.Prefix
	// proxied is set if the site uses https. This server does not terminate TLS, so every connection then passes
	// through a proxy.
	proxied bool
	log     *slog.Logger
	warned  sync.Once
}

// ip returns the client's address. For a connection from a trusted proxy, that is the last address in X-Forwarded-For
// that is not a trusted proxy. For any other connection, it is the address of the connection.
func (c *clientAddresses) ip(r *http.Request) string {
	ip, _ := c.find(r)
	return ip
}

// isKnown reports whether ip returns the address of the client itself. If a proxy is missing from trusted_proxies, all
// its clients appear with the proxy's address.
func (c *clientAddresses) isKnown(r *http.Request) bool {
	ip, own := c.find(r)
	if !own && c.proxied {
		c.warned.Do(func() {
			c.log.WarnContext(r.Context(),
				"proxy is not in trusted_proxies: limits count all of its clients as one", "address", ip)
		})
	}
	return own
}

func (c *clientAddresses) find(r *http.Request) (ip string, own bool) {
	peer, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr, false
	}
	if !c.isTrusted(peer) {
		return peer, !c.proxied && !isForwarded(r)
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i, hop := range slices.Backward(hops) {
		hop = strings.TrimSpace(hop)
		if _, err := netip.ParseAddr(hop); err != nil {
			break
		}
		if !c.isTrusted(hop) {
			return hop, i == 0 // if more addresses precede it, it may be an unknown proxy
		}
	}
	return peer, false
}

func (c *clientAddresses) isTrusted(text string) bool {
	addr, err := netip.ParseAddr(strings.TrimSpace(text))
	return err == nil && slices.ContainsFunc(c.trusted, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) })
}

// isForwarded reports whether the request has a header that proxies add.
func isForwarded(r *http.Request) bool {
	headers := []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded", "Via"}
	return slices.ContainsFunc(headers, func(name string) bool { return len(r.Header.Values(name)) > 0 })
}
