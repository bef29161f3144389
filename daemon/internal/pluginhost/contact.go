package pluginhost

import (
	"errors"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
)

// Contact is how the last call to a backend went. At is zero when there was none.
type Contact struct {
	At time.Time
	// OK tells that the backend answered, be it with a refusal; Err says why it could not be asked.
	OK  bool
	Err string
}

// maxContacts bounds the backends that are remembered.
const maxContacts = 16

// contacts remembers the last contact with each backend address. The zero value is ready.
type contacts struct {
	mu sync.Mutex
	of map[string]Contact
}

// note takes the outcome of a call. What says nothing of the backend (an adapter that does not run) changes nothing.
func (c *contacts) note(url string, err error, now time.Time) {
	said := Contact{At: now, OK: err == nil}
	var p *backend.Problem
	if errors.As(err, &p) {
		said.OK = p.HTTPStatus != 0
		if p.Code == backend.CodeUnreachable && !said.OK {
			said.Err = p.Message
		}
	}
	if !said.OK && said.Err == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil || len(c.of) >= maxContacts && c.of[url].At.IsZero() {
		c.of = map[string]Contact{}
	}
	c.of[url] = said
}

// Contact tells how the last call to a backend address went. It asks nobody.
func (h *Host) Contact(url string) Contact {
	h.contacts.mu.Lock()
	defer h.contacts.mu.Unlock()
	return h.contacts.of[url]
}
