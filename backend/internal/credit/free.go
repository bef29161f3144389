package credit

import (
	"net/netip"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/limit"
)

const (
	// grantKept is how long an address gets no more free credit after a grant.
	grantKept = 90 * 24 * time.Hour
	// maxOfNetwork is the number of accounts on one network that get free credit within grantKept. It is above 1
	// because the members of an office or a school share a network.
	maxOfNetwork = 20
)

// addressOf maps all spellings of an e-mail address to one form. It ignores case and the part after a plus sign,
// because most mail servers deliver all spellings to the same mailbox.
func addressOf(email string) string {
	local, domain, _ := strings.Cut(strings.ToLower(email), "@")
	local, _, _ = strings.Cut(local, "+")
	return local + "@" + domain
}

// networkOf returns the network of a public address, in the size that an internet provider assigns to one customer.
// For any other address it returns "". If such an address belongs to a proxy, it returns one network for all proxies,
// which limits the free credit of their clients.
func networkOf(ip string, proxy bool) string {
	a, err := netip.ParseAddr(ip)
	a = a.Unmap().WithZone("")
	if err != nil || a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsUnspecified() {
		if proxy {
			return "unknown proxy"
		}
		return ""
	}
	return limit.Network(a.String())
}
