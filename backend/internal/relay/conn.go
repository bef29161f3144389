package relay

import (
	"context"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/host"
)

// Limits on the queue of one peer, in addition to Options.OutboxSize.
const (
	maxQueued       = 16 << 20 // bytes
	maxStreamBytes  = 4 << 20
	maxStreamFrames = 1024
)

// conn is one attached peer.
type conn struct {
	host.Peer
	host.Attachment              // set for an app
	session         *liveSession // set when it is attached
	isPage          bool
	// isSignedIn reports, for a page, whether its user is still signed in.
	isSignedIn func(context.Context) bool
}

// sender returns the peer's name in the log.
func (c *conn) sender() string {
	if c.isPage {
		return glasses.SenderGlasses
	}
	return glasses.SenderApp
}

// Handle handles one message from the peer (host.Handler).
func (c *conn) Handle(m host.Message) { c.session.handle(context.Background(), c, m) }

// Ending does nothing: the queued frames are written first, however long the network takes (host.Handler).
func (c *conn) Ending() {}

// Gone detaches the peer (host.Handler).
func (c *conn) Gone() {
	c.leave()
	c.session.hub.serving.Done()
}
