package realdevice

import (
	"context"
	"slices"
	"strings"
)

// claim reserves a peripheral for a session, which has at most one claim per link. Its address is unknown if a page
// made the connection.
type claim struct {
	session    *session
	pair, link string
	address    string // "" if unknown
}

// overlaps reports whether two claims may refer to the same pair. Pairs with the same name can be told apart only by
// address.
func (c claim) overlaps(o claim) bool {
	if c.address != "" && o.address != "" {
		return c.address == o.address
	}
	return strings.EqualFold(c.pair, o.pair)
}

// claim reserves a peripheral in place of the one that the session holds for this link. If another session has
// reserved it, claim returns that session's ID, or "" if none has. If the holder is an earlier attachment of the same
// session, claim waits until the glasses are released, or returns the ID if ctx ends first.
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

// tryClaim reserves the peripheral and returns nil, or returns the session that has reserved it.
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

// unclaim ends a session's reservation for a link, or all of its reservations if link is empty.
func (a *adapter) unclaim(s *session, link string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.claims = slices.DeleteFunc(a.claims, func(c claim) bool {
		return c.session == s && (link == "" || c.link == link)
	})
}

// release ends all reservations of a session after its glasses were cleared.
func (a *adapter) release(s *session) {
	a.unclaim(s, "")
	close(s.left)
}
