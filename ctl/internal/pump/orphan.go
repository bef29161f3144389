package pump

import "time"

// proofID is the id of the ping that asks a client for a sign of life.
const proofID = `"service-mcp-proof"`

// watchClient closes abandoned when the parent has ended and the client is dead. The parent alone proves nothing: it may
// have been a launcher (npx, sh -c) of a client that lives. So the client is asked, by a ping, and its answer proves that it
// lives; from then on only the end of In ends the shim. Without this a shim outlives an agent that
// was killed for as long as another process holds the agent's end of the pipe.
func (p *Pump) watchClient(abandoned chan<- struct{}) {
	p.opts.Orphaned()
	p.proofFrom.Store(time.Now().Add(p.opts.Proof / 5).UnixNano())
	unread := make(chan struct{})
	go func() { // may wait for a client that does not read
		if p.print(`{"jsonrpc":"2.0","id":`+proofID+`,"method":"ping"}`+"\n") != nil {
			close(unread)
		}
	}()
	timer := time.NewTimer(p.opts.Proof)
	defer timer.Stop()
	select {
	case <-p.lives:
	case <-unread:
		close(abandoned)
	case <-timer.C:
		close(abandoned)
	}
}

// noteLife takes any message as a proof, once those that a dead client left in the pipe have been read.
func (p *Pump) noteLife() {
	if from := p.proofFrom.Load(); from > 0 && time.Now().UnixNano() > from {
		p.proved()
	}
}

func (p *Pump) proved() {
	select {
	case p.lives <- struct{}{}:
	default:
	}
}
