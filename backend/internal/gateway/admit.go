package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/internal/problem"
)

// call is the state of one call.
type call struct {
	s        *Service
	who      Caller
	request  *wire.Request
	model    *Model
	script   *assistantscript.Script // the script that answers instead of a provider, or nil
	body     *requestBody            // the body to send to the provider
	sent     bool                    // the provider may have received a part of the body
	own      bool                    // the project pays with its own key
	key      key                     // the key for the provider, of the project or of the operator
	hold     string                  // "" for a call that costs the account nothing
	held     credit.Amount           // the amount of the hold
	started  time.Time
	kind     string    // of the row, instead of the interface; "" for a call of an app
	recalled *recalled // nil if the call does not remember
}

// Do serves one call. Before the answer has begun, it returns a *Refusal on failure. Afterwards it returns an error
// that wraps ErrBroken, or nil if the app has disconnected.
func (s *Service) Do(ctx context.Context, who Caller, api wire.API, body []byte, to Sink) error {
	end, err := s.begin(ctx, who)
	if err != nil {
		return err
	}
	defer end()
	c := &call{s: s, who: who, started: s.Now()}
	if err := c.admit(ctx, api, body); err != nil {
		refusal := refusalOf(err)
		c.recordRefusal(ctx, api, refusal)
		return refusal
	}
	if c.script != nil {
		request, err := assistantscript.ParseRequest(body)
		if err != nil {
			return c.failScript(ctx, err)
		}
		c.recalled = s.recall(ctx, who)
		return c.playScript(ctx, request, to, end)
	}
	return c.pass(ctx, to)
}

// admit decodes the request, computes its maximum cost and holds that amount.
func (c *call) admit(ctx context.Context, api wire.API, body []byte) (err error) {
	if c.request, err = wire.Decode(api, body); err != nil {
		return err
	}
	if c.kind != kindMemory {
		if c.script, err = c.s.script(ctx, c.who, c.request.Model); err != nil {
			return err
		}
	}
	if c.model = scriptModel; c.script == nil {
		if c.model, c.own, err = c.s.find(ctx, c.who, c.request.Model); err != nil {
			return err
		}
	}
	m := c.model
	c.key = m.Provider.key
	if m.Provider.keyed {
		if c.key, err = c.s.Servers.key(ctx, c.who, m.Provider.ID); err != nil {
			return fmt.Errorf("read key of local server: %w", err)
		}
	}
	switch {
	case m.API != api:
		return Refuse(problem.CodeWrongAPI, "the model "+m.ID+" is served at "+m.API.Route()).At("model")
	case c.script != nil:
		return nil
	case c.request.Images > 0 && m.imageTokens == 0:
		return Refuse(problem.CodeUnsupportedParameter,
			"the model "+m.ID+" does not accept images: remove them, or use a model that does").At("messages")
	}
	if c.own {
		if err := c.takeOwnKey(ctx); err != nil {
			return err
		}
	}
	c.recallInto(ctx)
	input := c.inputBound()
	output := min(m.output, m.defaultOutput)
	if c.request.Output > 0 {
		output = min(m.output, c.request.Output)
	}
	if err := c.request.CheckSize(output); err != nil {
		return err
	}
	if output, err = c.reserve(ctx, input, output); err != nil {
		return err
	}
	c.body = &requestBody{all: c.request.Encode(m.upstream, m.outputField, output)}
	c.request.Drop()
	return nil
}

// inputBound returns an upper bound on the input tokens that the provider can report for this call. It never exceeds
// the model's context.
func (c *call) inputBound() int64 {
	return min(c.request.InputBound(c.model.imageTokens), c.model.context)
}

// reserve holds the price of input and output, and returns the maximum length of the answer. If the app set no limit,
// the available credit limits the length.
func (c *call) reserve(ctx context.Context, input, output int64) (int64, error) {
	prices := c.model.Prices
	if c.own || prices.Free() {
		return output, nil
	}
	err := c.takeHold(ctx, prices.Bound(input, output))
	var (
		none     *credit.NoCredit
		capped   *credit.CapReached
		required *credit.AttestationRequired
	)
	if errors.As(err, &capped) {
		return 0, capReached(capped, prices.Affords(int64(capped.Limit-capped.Used), input))
	}
	if errors.As(err, &required) {
		return 0, attestationRequired(required, prices.Affords(int64(required.Limit-required.Used), input),
			prices.Affords(int64(required.Limit), input))
	}
	if !errors.As(err, &none) {
		return output, err
	}
	covered := min(prices.Affords(int64(none.Available), input), output)
	coveredLater := prices.Affords(int64(none.Available+none.Held), input) // the tokens covered after the calls in flight
	switch {
	case c.request.Output == 0 && covered < minShrunk && coveredLater >= minShrunk:
		return 0, &credit.Reserved{Needed: credit.Amount(prices.Bound(input, minShrunk)), Available: none.Available,
			Held: none.Held}
	case covered < 1:
		return 0, err
	case c.request.Output > 0 || covered < minShrunk:
		money := noCredit(none)
		money["affordableOutputTokens"] = covered
		return 0, Refuse(problem.CodeRequestTooLarge,
			fmt.Sprintf("the credit covers an answer of %d tokens: request at most that many, or shorten the input",
				covered)).with(money)
	}
	return covered, c.takeHold(ctx, prices.Bound(input, covered))
}

func (c *call) takeHold(ctx context.Context, amount int64) error {
	hold, err := c.s.Purse.Hold(ctx, credit.HoldRequest{
		Account: c.who.Account, Project: c.who.Project, Amount: credit.Amount(amount),
		ByKey: c.who.byKey(),
	})
	if err != nil {
		return err
	}
	c.hold, c.held = hold.ID, hold.Amount
	return nil
}

// settleContext returns a context that outlives the app's request, so that usage is charged even if the app
// disconnects.
func settleContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
}

func (c *call) recordRefusal(ctx context.Context, api wire.API, refusal *Refusal) {
	row := c.row(refusal.Code)
	row.Kind = cmp.Or(c.kind, string(api))
	left := refusal.Err != nil && ctx.Err() != nil
	if left {
		row.Outcome = outcomeCancelled
	}
	ctx, cancel := settleContext(ctx)
	defer cancel()
	if err := c.s.Purse.Record(ctx, row); err != nil {
		c.s.Log.ErrorContext(ctx, "failed to record refused call", "err", err)
	}
	if refusal.Err != nil && !left {
		c.s.Log.ErrorContext(ctx, "failed to admit call", "err", refusal.Err)
	}
}

// row returns the record of the call for the ledger.
func (c *call) row(outcome string) credit.Call {
	row := credit.Call{Account: c.who.Account, Project: c.who.Project, Source: credit.SourceCredit, Outcome: outcome,
		Duration: c.s.Now().Sub(c.started)}
	if c.model != nil {
		row.Model, row.Kind = c.model.ID, cmp.Or(c.kind, string(c.model.API))
		switch {
		case c.script != nil:
			row.Source = credit.SourceScript
		case c.model.Provider.Local:
			row.Source = credit.SourceLocal
		case c.own:
			row.Source = credit.SourceOwnKey
		}
	}
	return row
}

// finish charges the usage or releases the hold, and counts the call.
func (c *call) finish(ctx context.Context, r result) {
	c.s.forget(c) // the lease lasts longer than the settlement
	ctx, cancel := settleContext(ctx)
	defer cancel()
	row := c.row(r.outcome)
	row.TextIn, row.TextCached, row.TextOut = r.usage.In-r.usage.Cached, r.usage.Cached, r.usage.Out
	row.Estimated = r.estimated
	charge := credit.Amount(c.model.Prices.Of(r.usage))
	if r.wholeHold {
		charge = max(charge, c.held)
	}
	c.book(ctx, charge, row, r)
}

// book charges the call and counts it, or releases its hold.
func (c *call) book(ctx context.Context, charge credit.Amount, row credit.Call, r result) {
	var err error
	switch {
	case c.hold == "":
		err = c.s.Purse.Record(ctx, row)
	case charge == 0:
		err = c.s.Purse.Release(ctx, c.hold, row)
	case r.carried:
		err = c.s.Purse.Carry(ctx, c.hold, charge, row)
	default:
		err = c.settle(ctx, charge, row, r)
	}
	if err != nil { // the purse retries a settlement that can succeed later
		c.s.Log.ErrorContext(ctx, "failed to settle call", "model", c.model.ID, "err", err)
	}
}

func (c *call) settle(ctx context.Context, charge credit.Amount, row credit.Call, r result) error {
	charged, err := c.s.Purse.Settle(ctx, c.hold, charge, row)
	if err != nil {
		return err
	}
	if charged < charge {
		c.s.Log.WarnContext(ctx, "call cost more than its hold", "model", c.model.ID, "cost", charge, "charged", charged)
	}
	if r.outcome == outcomeOK {
		c.s.noteReceipt(c.model, r.malformed)
	}
	return nil
}
