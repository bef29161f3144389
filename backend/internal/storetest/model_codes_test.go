package storetest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

// model is the linking protocol without a database: codes, the link that each code became, and two accounts.
type codeModel struct {
	codes  []modelCode
	active [modelPeople]bool
}

type modelCode struct {
	state    link.State
	gone     bool // deleted by a sweep
	account  int
	expires  time.Time
	interval time.Duration
	polled   time.Time // as remembered by the running process
	repolled time.Time
	trail    map[audit.TrailAction]int

	linked, used, revoked bool
}

func (m *codeModel) issue(now time.Time) {
	m.codes = append(m.codes, modelCode{state: link.Pending, expires: now.Add(modelTimes.CodeTTL),
		interval: modelTimes.PollInterval,
		trail:    map[audit.TrailAction]int{audit.TrailIssue: 1}})
}

func (m *codeModel) reopen() {
	for i := range m.codes {
		m.codes[i].polled = time.Time{}
	}
}

func (m *codeModel) clone() codeModel {
	other := codeModel{active: m.active}
	for _, c := range m.codes {
		c.trail = maps.Clone(c.trail)
		other.codes = append(other.codes, c)
	}
	return other
}

func (m *codeModel) like(other codeModel) bool { return reflect.DeepEqual(*m, other) }

// do performs an operation on the codeModel and returns its outcome.
func (m *codeModel) do(o op, now time.Time) string {
	c := &m.codes[o.code]
	open := !c.gone && c.state == link.Pending && now.Before(c.expires)
	switch o.kind {
	case "view":
		switch {
		case c.gone:
			return outcome(link.ErrUnknown)
		case c.state == link.Denied:
			return outcome(link.ErrDenied)
		case c.state != link.Pending:
			return outcome(link.ErrNotPending)
		case !open:
			return outcome(link.ErrExpired)
		}
		c.trail[audit.TrailView] = 1
	case "approve", "deny":
		if !open {
			return outcome(link.ErrNotPending)
		}
		c.state, c.account = link.Approved, o.account
		if o.kind == "deny" {
			c.state = link.Denied
		}
		c.trail[audit.TrailAction(o.kind)]++
	case "poll":
		return m.poll(c, now)
	case "use":
		if c.revoked || !m.active[c.account] {
			return outcome(link.ErrRevoked)
		}
		c.used = true
	case "revoke":
		if c.revoked {
			return outcome(link.ErrUnknown)
		}
		c.revoked = true
	case "revoke all":
		return m.revokeAll(o.account)
	case "suspend", "restore":
		to := o.kind == "restore"
		changed := m.active[o.account] != to
		m.active[o.account] = to
		return fmt.Sprint(changed, "ok")
	case "sweep":
		m.sweep(now)
	}
	return "ok"
}

func (m *codeModel) poll(c *modelCode, now time.Time) string {
	none := " 0s"
	switch {
	case c.gone:
		return outcome(link.ErrUnknown) + none
	case c.state == link.Denied:
		return outcome(link.ErrDenied) + none
	case c.state == link.Redeemed:
		if c.repolled.IsZero() {
			c.repolled = now
		}
		return outcome(link.ErrUnknown) + none
	case c.state == link.Approved && now.After(c.expires.Add(modelTimes.Grace)), c.state == link.Pending &&
		!now.Before(c.expires):
		return outcome(link.ErrExpired) + none
	case c.state == link.Pending:
		if !c.polled.IsZero() && now.Sub(c.polled) < c.interval-c.interval/4-500*time.Millisecond {
			c.interval = min(c.interval+5*time.Second, time.Minute)
		}
		c.polled = now
		return "ok " + c.interval.String()
	case !m.active[c.account]:
		return outcome(link.ErrDenied) + none
	}
	c.state, c.linked = link.Redeemed, true
	c.trail[audit.TrailRedeem]++
	return "token"
}

func (m *codeModel) revokeAll(account int) string {
	n := 0
	for i := range m.codes {
		c := &m.codes[i]
		if c.account != account {
			continue
		}
		if c.linked && !c.revoked {
			c.revoked = true
			n++
		}
		if !c.gone && c.state == link.Approved {
			c.state = link.Denied
			c.trail[audit.TrailDeny]++
		}
	}
	return fmt.Sprint(n, "ok")
}

// sweep revokes tokens that were never received, and deletes codes that ended long ago.
func (m *codeModel) sweep(now time.Time) {
	for i := range m.codes {
		c := &m.codes[i]
		if c.linked && !c.used && !c.gone && !c.repolled.IsZero() && c.repolled.Before(now.Add(-modelTimes.UnusedAfter)) {
			c.revoked = true
		}
		if c.expires.Before(now.Add(-24 * time.Hour)) {
			c.gone = true
		}
	}
}

// outcome describes an error in the form that both the codeModel and the implementation report.
func outcome(err error) string {
	for _, known := range []error{link.ErrUnknown, link.ErrExpired, link.ErrDenied, link.ErrNotPending, link.ErrRevoked,
		link.ErrTokenExpired} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if err != nil {
		return "unexpected: " + err.Error()
	}
	return "ok"
}
