package pump

import "context"

// What is kept of calls that may be repeated: the longest line in bytes, and all lines of a connection together.
const (
	maxRepeated     = 16 << 10
	maxRepeatedSize = 256 << 10
)

// readOnly are the methods whose requests change nothing.
var readOnly = map[string]bool{
	"ping": true, "tools/list": true, "resources/list": true, "resources/read": true, "resources/templates/list": true,
	"prompts/list": true, "prompts/get": true, "completion/complete": true, "server/discover": true,
}

// keep holds on to the line of a request that the next daemon may have when this one dies. l.mu is held.
func (l *link) keep(m message, line []byte) {
	call, ok := l.inflight[m.id]
	if !ok || m.kind != request || m.again || call.asked > 1 || call.line != nil || len(line) > maxRepeated || l.kept+len(line) > maxRepeatedSize {
		return
	}
	if readOnly[m.method] || m.method == "tools/call" && l.repeatable[unquote(member(m.params, "name"))] {
		call.line = append([]byte(nil), line...)
		l.kept += len(line)
		l.inflight[m.id] = call
	}
}

// repeats takes the calls that the next daemon gets out of those that a dead one left. p.mu is held.
func (p *Pump) repeats(left map[string]pending) [][]byte {
	var lines [][]byte
	for id, call := range left {
		if call.line == nil || call.asked > 1 {
			continue
		}
		delete(left, id)
		lines = append(lines, call.line)
		p.repeating[id] = true
	}
	return lines
}

// repeat gives the next daemon calls that change nothing. A call that dies again is answered.
func (p *Pump) repeat(lines [][]byte) {
	for _, line := range lines {
		m := scanAgain(line, true)
		p.mu.Lock()
		wanted := p.repeating[m.id]
		delete(p.repeating, m.id)
		p.mu.Unlock()
		if wanted && p.forward(context.Background(), m, line) != nil {
			return
		}
	}
}

// forget drops a call that was cancelled before it could be repeated.
func (p *Pump) forget(m message) {
	if m.kind != notification || m.method != "notifications/cancelled" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.repeating, normalID(member(m.params, "requestId")))
}
