package stdioproxy

import "context"

// Limits of the calls kept for repetition, in bytes: for one line and for all lines of a connection.
const (
	maxRepeated     = 16 << 10
	maxRepeatedSize = 256 << 10
)

// readOnly lists the methods without side effects.
var readOnly = map[string]bool{
	"ping": true, "tools/list": true, "resources/list": true, "resources/read": true, "resources/templates/list": true,
	"prompts/list": true, "prompts/get": true, "completion/complete": true, "server/discover": true,
}

// keepForRepeat stores the line of a request that may be repeated with the next daemon. The caller must hold c.mu.
func (c *connection) keepForRepeat(m message, line []byte) {
	call, ok := c.inflight[m.id]
	if !ok || m.kind != request || m.again || call.uses > 1 || call.line != nil || len(line) > maxRepeated || c.kept+
		len(line) > maxRepeatedSize {
		return
	}
	if readOnly[m.method] || m.method == "tools/call" && c.repeatable[unquote(member(m.params, "name"))] {
		call.line = append([]byte(nil), line...)
		c.kept += len(line)
		c.inflight[m.id] = call
	}
}

// takeRepeatable removes the calls that can be repeated from left, and returns their lines. The caller must hold p.mu.
func (p *Proxy) takeRepeatable(left map[string]pending) [][]byte {
	var lines [][]byte
	for id, call := range left {
		if call.line == nil || call.uses > 1 {
			continue
		}
		delete(left, id)
		lines = append(lines, call.line)
		p.repeating[id] = true
	}
	return lines
}

// repeat sends repeatable calls to the next daemon. A call that fails again gets an error response.
func (p *Proxy) repeat(lines [][]byte) {
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

// forgetRepeat drops a call that was cancelled before its repeat.
func (p *Proxy) forgetRepeat(m message) {
	if m.kind != notification || m.method != "notifications/cancelled" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.repeating, normalID(member(m.params, "requestId")))
}
