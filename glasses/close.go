package glasses

// WebSocket status codes with which the service closes a connection.
const (
	CloseTooBig      = 1009 // a frame was too large
	CloseStore       = 1011 // the log or the store failed
	CloseRestart     = 1012 // the service or the session restarts
	CloseSlow        = 1013 // the peer is too far behind, or too many are attached
	CloseBadHello    = 4400
	CloseBadSecret   = 4401 // for a page: the user has signed out
	CloseSessionOver = 4410
)

// DroppedByFault is the reason sent with CloseRestart when a Fault with DropApp closes an app's connection.
const DroppedByFault = "the connection was dropped by an injected fault; attach again"
