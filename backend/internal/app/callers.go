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

// callers tells who makes a request.
type callers struct {
	trusted []netip.Prefix
	// proxied says that people come by https, which this server does not speak: a proxy makes every connection.
	proxied bool
	log     *slog.Logger
	warned  sync.Once
}

// ip is the caller's address: that of the connection, unless a trusted proxy made it; then the last address of
// X-Forwarded-For that is not a trusted proxy itself.
func (c *callers) ip(r *http.Request) string {
	ip, _ := c.find(r)
	return ip
}

// known reports whether ip returns the caller's own address. Behind a proxy that is not in trusted_proxies every caller
// has the proxy's address.
func (c *callers) known(r *http.Request) bool {
	ip, own := c.find(r)
	if !own && c.proxied {
		c.warned.Do(func() {
			c.log.WarnContext(r.Context(), "a proxy is not named in trusted_proxies: limits count all of its callers as one", "address", ip)
		})
	}
	return own
}

func (c *callers) find(r *http.Request) (ip string, own bool) {
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
			return hop, i == 0 // with more before it, it may be a proxy that forwards for them
		}
	}
	return peer, false
}

func (c *callers) isTrusted(text string) bool {
	addr, err := netip.ParseAddr(strings.TrimSpace(text))
	return err == nil && slices.ContainsFunc(c.trusted, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) })
}

// isForwarded reports whether a proxy has left its mark.
func isForwarded(r *http.Request) bool {
	return slices.ContainsFunc([]string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded", "Via"},
		func(name string) bool { return len(r.Header.Values(name)) > 0 })
}
