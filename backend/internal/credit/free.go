package credit

import (
	"net/netip"
	"strings"
	"time"
)

const (
	// grantKept is how long a grant of free credit prevents another one to the same address.
	grantKept = 90 * 24 * time.Hour
	// maxOfNetwork is how many accounts of one network get free credit within grantKept: an office or a class shares
	// one.
	maxOfNetwork = 20
)

// addressOf returns the common form of all spellings of a mail address. It ignores case and the part after a plus sign,
// because most mail servers deliver all of them to the same mailbox.
func addressOf(email string) string {
	local, domain, _ := strings.Cut(strings.ToLower(email), "@")
	local, _, _ = strings.Cut(local, "+")
	return local + "@" + domain
}

// networkOf returns the network of a public address, in the size that an internet provider assigns to one customer, or
// "" for other addresses.
func networkOf(ip string) string {
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return ""
	}
	a = a.Unmap().WithZone("")
	if a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsUnspecified() {
		return ""
	}
	bits := 24
	if a.Is6() {
		bits = 48
	}
	return netip.PrefixFrom(a, bits).Masked().String()
}
