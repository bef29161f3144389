//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/test/browser"
	"github.com/service-dev/service/test/llmtest"
)

// greedy is an account that makes as many calls at once as it can, from many addresses. Most of its apps disconnect
// before the answer. Meanwhile the other accounts' calls must succeed, and the provider's bill must be paid.
type greedy struct {
	*soak
	owner *browser.Linked
	// apps have keys of one project and use different addresses of this machine, because each key and each address
	// has its own limit.
	apps []*modelApp
	rng  *rand.Rand
	from int // number of the provider's records before the current burst
	seen backendapi.GatewaySums

	// In micro-USD: what the account paid, what the provider billed for it, and the part of the bill for calls that
	// cost more than their holds. lost is the part billed for calls whose holds were returned because the backend was
	// killed.
	charged, billed, aboveHolds, lost int64
}

const (
	greedyProject = "com.example.greedy"
	// greedyCalls is the number of concurrent calls, which is more than the gateway serves at once for all accounts.
	greedyCalls   = 1100
	greedyApps    = 10 // one link cannot create more keys in a minute
	greedyOutput  = 400
	betweenBursts = 5 * time.Second
	fullShare     = "too_many_calls"
	fullRate      = "rate_limited"
)

func (s *soak) startGreedy() error {
	g := &greedy{soak: s, owner: s.greedyOwner, rng: s.random(400)}
	for n := range greedyApps {
		a := newModelApp(s, 0)
		a.name, a.project, a.owner = "greedy account", greedyProject, g.owner
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+n))}}
		a.client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext}
		var err error
		if a.key, err = g.owner.ProjectKey(greedyProject); err != nil {
			return err
		}
		g.apps = append(g.apps, a)
	}
	s.gateway.greedy = g
	return nil
}

// work makes bursts of calls until ctx ends.
func (g *greedy) work(ctx context.Context) {
	for pause(ctx, betweenBursts); ctx.Err() == nil; pause(ctx, betweenBursts) {
		g.gateway.calling.RLock()
		g.burst()
		g.gateway.calling.RUnlock()
	}
}

// burst makes calls concurrently and waits until all of them are charged.
func (g *greedy) burst() {
	since, kills := time.Now(), g.backend.kills.Load()
	var all sync.WaitGroup
	for n := range greedyCalls {
		a := g.apps[n%greedyApps]
		after := time.Duration(g.rng.Int64N(int64(reasoning))) // two of three disconnect
		c := &modelCall{id: fmt.Sprintf("%s/%d/%d", greedyProject, g.from, n), api: "chat", model: llmtest.Reasons,
			streamed: n%2 == 0, leaves: n%3 > 0, output: greedyOutput}
		if n%100 == 0 {
			c.model, c.streamed, c.leaves, c.output = llmtest.AboveMax, false, false, 4
		}
		all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if c.leaves {
				defer time.AfterFunc(after, cancel).Stop()
			}
			switch outcome := a.send(ctx, c); outcome {
			case ok, left, notSent, noBackend, fullShare, fullRate:
				g.results.answered("greedy account's call", outcome)
			default:
				g.checkOutcome(a.name, "greedy account's call", outcome, since, c.model)
			}
		})
	}
	all.Wait()
	g.count(kills)
}

// count waits until the usage includes all calls that the provider received in the burst, or a kill has interrupted
// them.
func (g *greedy) count(kills int64) {
	var calls int
	var billed, above int64
	var killed bool
	seen := g.seen
	if !eventually(recovery, func() bool {
		killed = g.backend.kills.Load() != kills
		calls, billed, above = g.bill()
		return g.readUsage() == nil && (killed || int(g.seen.Calls-seen.Calls) >= calls)
	}) {
		g.results.report("greedy account: the usage includes %d of %d calls within %s", g.seen.Calls-seen.Calls, calls,
			recovery)
	}
	g.from = g.provider.Len()
	if killed {
		g.lost += billed
		return
	}
	g.billed, g.aboveHolds = g.billed+billed, g.aboveHolds+above
}

// readUsage reads how much the account has paid so far.
func (g *greedy) readUsage() error {
	now, err := g.apps[0].usage()
	if err == nil {
		g.seen, g.charged = now.Totals, now.Totals.MicroUSD
	}
	return err
}

// bill returns the number and the price of the calls that the provider received in the current burst, and the part of
// the price for calls that cost more than their holds.
func (g *greedy) bill() (calls int, billed, above int64) {
	for _, c := range g.provider.Since(g.from) {
		if !strings.HasPrefix(callID(c), greedyProject) {
			continue
		}
		calls++
		bill := c.Bill(llmtest.CataloguePrices)
		billed += bill
		if c.Model == llmtest.AboveMax {
			above += bill
		}
	}
	return calls, billed, above
}

// compare compares the provider's bill with the payments of the account and the operator. The operator pays only the
// cost of calls beyond their holds.
func (g *greedy) compare(l ledger) {
	if g.charged+l.Operator < g.billed || l.Operator > g.aboveHolds+g.lost || g.aboveHolds > 0 && l.Operator == 0 {
		g.results.report("greedy account: the provider billed %d micro-USD, %d of them above holds, and %d lost "+
			"with a killed backend; the account paid %d, and the operator %d",
			g.billed, g.aboveHolds, g.lost, g.charged, l.Operator)
	}
}
