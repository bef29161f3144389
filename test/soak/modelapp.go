//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/test/browser"
	"github.com/service-dev/service/test/llmtest"
)

// modelApp is an app that calls models through the gateway. It has its own project, so that the project's usage shows
// the cost of its calls.
type modelApp struct {
	*soak
	name, project, key string
	owner              *browser.Linked
	rng                *rand.Rand
	client             *http.Client
	n                  int // number of calls made
	ownKey             bool
	cap                int // daily cap in cents; 0 means none

	seen    backendapi.GatewaySums // the last usage that was read
	ends    map[string]string      // how each call ended, by call id
	charged map[string]int64       // charges by how the calls ended, in micro-USD
}

func newModelApp(s *soak, n int) *modelApp {
	return &modelApp{soak: s, name: fmt.Sprintf("model app %d", n), project: fmt.Sprintf("com.example.models%d", n),
		owner: s.people[1-n*len(s.people)/modelApps], rng: s.random(uint64(300 + n)), ends: map[string]string{},
		charged: map[string]int64{},
		// Use a new connection for each call, so that a process has received a call exactly if it has accepted the
		// connection.
		client: &http.Client{Timeout: callTimeout, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// Outcomes of model calls, in addition to ok and the codes of refusals.
const (
	noBackend  = "backend_unreachable"
	notSent    = "not sent" // no process was listening
	left       = "left"
	brokeOff   = "broke off"
	capReached = "cap_reached"
	capHeld    = "credit_reserved" // reserved by other calls in flight
)

// refusals lists the refusals that a failing provider may cause. A model with wrong usage reports is no longer
// offered.
var refusals = []string{brokeOff, "provider_busy", "provider_unavailable", "provider_error", "provider_refused",
	"own_key_refused", "model_not_found", "invalid_value"}

// How calls can end.
const (
	answered     = "answered"
	ofOwnKey     = "paid by an own key"
	falseReceipt = "without a true receipt"
	failed       = "refused or broken off"
	cut          = "cut by a killed backend"
	uncounted    = "not counted in time"
)

// work makes calls until ctx ends.
func (a *modelApp) work(ctx context.Context) {
	for ctx.Err() == nil {
		a.gateway.calling.RLock()
		if a.rng.IntN(4) == 0 {
			a.converse()
		} else {
			a.callAndCompare()
		}
		a.gateway.calling.RUnlock()
		pause(ctx, time.Duration(50+a.rng.IntN(400))*time.Millisecond)
	}
}

// draw returns a random call. The provider responds correctly to most calls.
func (a *modelApp) draw() *modelCall {
	a.n++
	c := &modelCall{id: fmt.Sprintf("%s/%d", a.project, a.n),
		api:   []string{"chat", "responses", "messages"}[a.rng.IntN(3)],
		model: llmtest.Good, streamed: a.rng.IntN(2) == 0, tools: a.rng.IntN(4) == 0, leaves: a.rng.IntN(10) == 0,
		output: 4 + a.rng.IntN(20)}
	switch d := a.rng.IntN(10); {
	case d < 3:
		c.model = honest[a.rng.IntN(len(honest))]
	case d < 5:
		c.model = dishonest[a.rng.IntN(len(dishonest))]
		c.leaves = c.leaves || slices.Contains(hanging, c.model)
	case c.leaves && d < 8:
		c.model, c.output = llmtest.Reasons, 200
	}
	return c
}

// callAndCompare makes one call or several concurrent ones, and compares their cost with the provider's records. It
// retries a call that failed temporarily once.
func (a *modelApp) callAndCompare() {
	calls := []*modelCall{a.draw()}
	for a.rng.IntN(3) == 0 && calls[0].honest() {
		if c := a.draw(); c.honest() {
			calls = append(calls, c)
		}
	}
	a.makeCalls(calls)
	if first := calls[0]; strings.HasSuffix(first.outcome, "_busy") {
		again := *first
		a.n++
		again.id = fmt.Sprintf("%s/%d", a.project, a.n)
		a.makeCalls([]*modelCall{&again})
	}
	a.raiseReachedCap(calls)
}

// raiseReachedCap raises the cap if it refused one of the calls.
func (a *modelApp) raiseReachedCap(calls []*modelCall) {
	if slices.ContainsFunc(calls, (*modelCall).capped) {
		if err := a.raiseCap(); err != nil && !a.activeFaults.explains(noBackend, time.Now().Add(-longest)) {
			a.results.report("%s: raise the cap: %v", a.name, err)
		}
	}
}

// makeCalls makes calls concurrently and compares their cost.
func (a *modelApp) makeCalls(calls []*modelCall) {
	since, kills, from := time.Now(), a.backend.kills.Load(), a.bookmark()
	var all sync.WaitGroup
	for _, c := range calls {
		all.Go(func() { c.outcome = a.call(c, from, kills) })
	}
	all.Wait()
	for _, c := range calls {
		call := "model call, " + c.api
		switch {
		case c.outcome == notSent:
			a.checkOutcome(a.name, call, noBackend, since, c.model)
		case c.leaves && c.outcome == left, !c.honest() && slices.Contains(refusals, c.outcome),
			a.cap > 0 && c.capped():
			a.results.answered(call, c.outcome)
		default:
			a.checkOutcome(a.name, call, c.outcome, since, c.model)
		}
	}
	calls = slices.DeleteFunc(slices.Clone(calls), func(c *modelCall) bool { return c.outcome == notSent })
	if len(calls) == 0 {
		return
	}
	now, counted, err := a.counted(len(calls), kills)
	if err != nil {
		a.results.report("%s: the usage within %s: %v", a.name, recovery, err)
		for _, c := range calls { // report each call, because no other place records it
			a.results.report("one of these is %+v", *c)
			a.ends[c.id] = c.kind() + uncounted
		}
		a.charged[calls[0].kind()+uncounted] += now.Totals.MicroUSD - a.seen.MicroUSD
		a.seen = now.Totals
		return
	}
	a.account(calls, now, counted, a.entries(from))
}

// counted waits until the usage includes n more calls than before, or the process that received them is dead.
func (a *modelApp) counted(n int, kills int64) (now backendapi.GatewayUsage, counted int, err error) {
	done := eventually(recovery, func() bool {
		killed := a.backend.kills.Load() != kills // checked before reading the usage, which is final after a kill
		now, err = a.usage()
		counted = int(now.Totals.Calls + now.Totals.Refused - a.seen.Calls - a.seen.Refused)
		return err == nil && (killed || counted >= n)
	})
	if err == nil && (!done || counted > n) {
		err = fmt.Errorf("the usage includes %d of %d calls", counted, n)
	}
	return now, counted, err
}

// account compares the cost of calls in the usage with the provider's records. counted is the number of calls that
// the usage includes. A kill interrupted the others, which cost nothing.
func (a *modelApp) account(calls []*modelCall, now backendapi.GatewayUsage, counted int, book []entry) {
	charged, guessed := now.Totals.MicroUSD-a.seen.MicroUSD, now.Totals.Estimated > a.seen.Estimated
	a.seen = now.Totals
	end, possible, most := answered, []int64{0}, int64(0)
	for _, c := range calls {
		var bill int64
		for _, entry := range book {
			if entry.id == c.id {
				bill = entry.bill
			}
		}
		may := []int64{bill}
		if c.outcome != ok && (c.outcome != left || !c.honest()) {
			end = failed
		}
		if end == failed || counted < len(calls) {
			may = append(may, 0)
		}
		var sums []int64
		for _, sum := range possible {
			for _, amount := range may {
				sums = append(sums, sum+amount)
			}
		}
		possible, most = sums, most+c.most()
	}
	wrong, honest := !slices.Contains(possible, charged), calls[0].honest() // concurrent calls are all honest
	switch {
	case a.ownKey:
		end, wrong = ofOwnKey, charged != 0
	case guessed && honest:
		wrong = true
	case guessed || wrong && !honest:
		end, wrong = falseReceipt, charged > most || guessed && charged < calls[0].least()
	case counted < len(calls):
		end = cut
	}
	end = calls[0].kind() + end
	for _, c := range calls {
		a.ends[c.id] = end
		if wrong {
			a.results.report("%s: %+v %s: charged were %d micro-USD for %d calls of which %d are counted; by the book %d",
				a.name,
				*c, end, charged, len(calls), counted, possible)
		}
	}
	a.charged[end] += charged
	if day := now.Caps.Day; day != nil && day.SpentMicroUSD > day.LimitMicroUSD {
		a.results.report("%s: %+v is spent beyond its cap", a.name, *day)
	}
}

// lastEvents maps interfaces to the final events of complete streams.
var lastEvents = map[string]string{
	"chat": "data: [DONE]", "responses": "response.completed", "messages": "message_stop",
}

// call makes a call. from and kills are the state of the provider's records and of the backend before the call.
func (a *modelApp) call(c *modelCall, from bookmark, kills int64) (outcome string) {
	ctx, cancel := context.WithCancel(context.Background())
	if c.leaves {
		var leaving sync.WaitGroup
		defer leaving.Wait()
		leaving.Go(func() {
			eventually(callTimeout, func() bool {
				return ctx.Err() != nil || slices.ContainsFunc(a.entries(from), func(e entry) bool {
					return e.id == c.id
				})
			})
			cancel()
		})
	}
	defer cancel()
	if c.talk != nil {
		return c.talk.turn(ctx, c, kills)
	}
	return a.send(ctx, c)
}

// send sends a call and reads its answer.
func (a *modelApp) send(ctx context.Context, c *modelCall) (outcome string) {
	path := map[string]string{"chat": "chat/completions"}[c.api]
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.backend.url+"/v1/"+cmp.Or(path, c.api),
		bytes.NewReader(c.body()))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+a.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := a.client.Do(req)
	if err != nil {
		return callError(ctx, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if bytes.Contains(answer, []byte(llmtest.Key)) {
		a.results.report("%s: the provider's key is in the answer of %s", a.name, c.model)
	}
	var refused struct{ Error struct{ Code string } }
	switch {
	case bytes.Contains(answer, []byte("the answer broke off")):
		return brokeOff
	case err != nil:
		return callError(ctx, err)
	case res.StatusCode != http.StatusOK && json.Unmarshal(answer, &refused) == nil:
		return refused.Error.Code
	case c.streamed && bytes.Contains(answer, []byte(lastEvents[c.api])), !c.streamed && json.Valid(answer):
		return ok
	}
	return fmt.Sprintf("%d, incomplete", res.StatusCode)
}

func callError(ctx context.Context, err error) string {
	var late interface{ Timeout() bool }
	switch {
	case ctx.Err() != nil:
		return left
	case errors.Is(err, syscall.ECONNREFUSED):
		return notSent
	case errors.As(err, &late) && late.Timeout():
		return errHangs.Error()
	}
	return noBackend
}

// page returns the path of the project's gateway page.
func (a *modelApp) page() string { return "/account/projects/" + a.project + "/gateway" }

func (a *modelApp) usage() (now backendapi.GatewayUsage, err error) {
	err = a.owner.Get(backendapi.PathProjects+"/"+a.project+backendapi.PathGatewayUsage, &now)
	return now, err
}

// submit fills in and submits a form on one of the project's pages.
func (a *modelApp) submit(page, path string, fields ...string) error {
	text, at, err := a.owner.Browser.Get(a.owner.Base + page)
	if err == nil {
		_, _, err = a.owner.Browser.Submit(text, at, path, fields...)
	}
	return err
}

// raiseCap raises the project's daily cap by one cent.
func (a *modelApp) raiseCap() error {
	a.cap++
	return a.submit(a.page(), a.page()+"/caps", "cap-day", fmt.Sprintf("%d.%02d", a.cap/100, a.cap%100))
}

func (a *modelApp) payByOwnKey() error {
	a.ownKey = true
	credentials := "/account/projects/" + a.project + "/credentials"
	return errors.Join(a.submit(credentials, credentials+"/"+ownKeys, "value", llmtest.Key),
		a.submit(a.page(), a.page()+"/key-source", "source", "own"))
}
