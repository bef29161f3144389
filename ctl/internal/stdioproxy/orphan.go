package stdioproxy

import "time"

// proofID is the ID of the ping that tests whether the client is alive.
const proofID = `"service-mcp-proof"`

// watchClient closes abandoned when both the parent process and the client are gone. The parent's exit alone is not
// sufficient, because the parent may have been a launcher (npx, sh -c). So watchClient pings the client. If the client
// responds, only the end of In ends the process. Without this check, service-mcp would outlive a killed agent for as
// long as another process holds its pipe.
func (p *Proxy) watchClient(abandoned chan<- struct{}) {
	p.opts.Orphaned()
	p.proofFrom.Store(time.Now().Add(p.opts.ProofTimeout / 5).UnixNano())
	answerUnreadable := make(chan struct{})
	go func() { // blocks while the client does not read
		if p.print(`{"jsonrpc":"2.0","id":`+proofID+`,"method":"ping"}`+"\n") != nil {
			close(answerUnreadable)
		}
	}()
	timer := time.NewTimer(p.opts.ProofTimeout)
	defer timer.Stop()
	select {
	case <-p.alive:
	case <-answerUnreadable:
		close(abandoned)
	case <-timer.C:
		close(abandoned)
	}
}

// noteActivity treats any message as a sign of life, except messages that a dead client left in the pipe.
func (p *Proxy) noteActivity() {
	if from := p.proofFrom.Load(); from > 0 && time.Now().UnixNano() > from {
		p.markAlive()
	}
}

func (p *Proxy) markAlive() { signal(p.alive) }
