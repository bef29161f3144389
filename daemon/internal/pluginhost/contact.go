package pluginhost

import (
	"errors"
	"sync"
	"time"

	"github.com/service-dev/service/internal/problem"
)

// Contact is the outcome of the last call to a backend. At is zero if there was none.
type Contact struct {
	At time.Time
	// OK reports whether the backend responded, even with a refusal. Err is the reason why the backend could not be
	// reached.
	OK  bool
	Err string
}

// maxContacts is the maximum number of backends that are remembered.
const maxContacts = 16

// contacts remembers the last contact with each backend address. The zero value is ready to use.
type contacts struct {
	mu sync.Mutex
	of map[string]Contact
}

// record stores the outcome of a call. It ignores a call that allows no conclusion about the backend, e.g. because the
// adapter was not running.
func (c *contacts) record(url string, err error, now time.Time) {
	contact := Contact{At: now, OK: err == nil}
	var p *problem.Error
	if errors.As(err, &p) {
		contact.OK = p.HTTPStatus != 0
		if p.Code == problem.CodeBackendUnreachable && !contact.OK {
			contact.Err = p.Message
		}
	}
	if !contact.OK && contact.Err == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil || len(c.of) >= maxContacts && c.of[url].At.IsZero() {
		c.of = map[string]Contact{}
	}
	c.of[url] = contact
}

// Contact returns the outcome of the last call to a backend address. It makes no call.
func (h *Host) Contact(url string) Contact {
	h.contacts.mu.Lock()
	defer h.contacts.mu.Unlock()
	return h.contacts.of[url]
}
