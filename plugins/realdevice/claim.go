package realdevice

import (
	"context"
	"slices"
	"strings"
)

// claim is the reservation of a peripheral for a session, which has at most one for each link. A page does not know
// addresses.
type claim struct {
	session    *session
	pair, link string
	address    string // "" if unknown
}

// overlaps reports whether two claims may be of one pair. Only addresses tell pairs of one name apart.
func (c claim) overlaps(o claim) bool {
	if c.address != "" && o.address != "" {
		return c.address == o.address
	}
	return strings.EqualFold(c.pair, o.pair)
}

// claim reserves a peripheral in place of the one that the session has for this link. It returns the id of the session
// that has the peripheral already, or "". If that is the same session, attached earlier, it waits until the glasses
// were left.
func (a *adapter) claim(ctx context.Context, c claim) (holder string) {
	for {
		other := a.tryClaim(c)
		if other == nil {
			return ""
		}
		if other.id != c.session.id {
			return other.id
		}
		select {
		case <-other.left:
		case <-ctx.Done():
			return other.id
		}
	}
}

// tryClaim returns the session that has the peripheral, or nil if it is reserved now.
func (a *adapter) tryClaim(c claim) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	isTaken := func(o claim) bool { return o.session != c.session && o.overlaps(c) }
	if i := slices.IndexFunc(a.claims, isTaken); i >= 0 {
		return a.claims[i].session
	}
	isEarlier := func(o claim) bool { return o.session == c.session && o.link == c.link }
	a.claims = append(slices.DeleteFunc(a.claims, isEarlier), c)
	return nil
}

// unclaim ends the reservation of a session for a link; "" stands for all links.
func (a *adapter) unclaim(s *session, link string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.claims = slices.DeleteFunc(a.claims, func(c claim) bool {
		return c.session == s && (link == "" || c.link == link)
	})
}

// release ends all reservations of a session whose glasses were left.
func (a *adapter) release(s *session) {
	a.unclaim(s, "")
	close(s.left)
}
