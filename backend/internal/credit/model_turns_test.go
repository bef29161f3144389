package credit_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/service-dev/service/backend/internal/credit"
)

// classes are the tokens of a call: text_in, text_cached, text_out, audio_in, audio_cached and audio_out.
type classes [6]int64

// turnPrices are the prices of a realtime model in micro-USD per token. Input costs at most 32, output at most 64.
var turnPrices = classes{4, 1, 16, 32, 2, 64}

func (c classes) price() (sum credit.Amount) {
	for i, n := range c {
		sum += credit.Amount(n * turnPrices[i])
	}
	return sum
}

// turnLimits are the most tokens of a turn in a realtime session.
type turnLimits struct{ in, out int64 }

// usageSums are sums of calls of one project and kind.
type usageSums struct {
	calls, failed, cancelled, estimated int64
	charged                             credit.Amount
	tokens                              classes
}

func (u *usageSums) add(v usageSums) {
	u.calls, u.failed, u.cancelled, u.estimated = u.calls+v.calls, u.failed+v.failed, u.cancelled+v.cancelled,
		u.estimated+v.estimated
	u.charged += v.charged
	for i, n := range v.tokens {
		u.tokens[i] += n
	}
}

// usageOf returns what a call adds to the sums.
func usageOf(c credit.Call, charged credit.Amount) usageSums {
	u := usageSums{calls: 1, charged: charged,
		tokens: classes{c.TextIn, c.TextCached, c.TextOut, c.AudioIn, c.AudioCached, c.AudioOut}}
	if c.Outcome == credit.OutcomeFailed {
		u.failed = 1
	}
	if c.Outcome == credit.OutcomeCancelled {
		u.cancelled = 1
	}
	if c.Estimated {
		u.estimated = 1
	}
	return u
}

// holdTurn holds the maximum price of a turn, whatever classes its tokens belong to. Each turn has a hold of its own,
// which does not grow.
func (m *purse) holdTurn(rt *rapid.T) *modelHold {
	t := &turnLimits{rapid.Int64Range(1, 8000).Draw(rt, "input"), rapid.Int64Range(1, 4000).Draw(rt, "output")}
	return m.holdAmount(rt, credit.Amount(t.in*turnPrices[3]+t.out*turnPrices[5]), t)
}

// converse holds and settles turns one after the other.
func (m *purse) converse(rt *rapid.T) {
	for range rapid.IntRange(1, 3).Draw(rt, "turns") {
		if h := m.holdTurn(rt); h != nil {
			m.settleTurn(rt, h, rapid.SampledFrom([]string{"ok", "cancelled", "failed"}).Draw(rt, "outcome"),
				rapid.Bool().Draw(rt, "without a receipt"))
		}
	}
}

// anyTurn returns a turn, which is open in most cases.
func (m *purse) anyTurn(rt *rapid.T) *modelHold {
	open := rapid.IntRange(0, 4).Draw(rt, "any, or an open one") > 0
	turns := slices.DeleteFunc(slices.Clone(m.holds), func(h *modelHold) bool {
		return h.turn == nil || open && h.state != "open"
	})
	if len(turns) == 0 {
		rt.Skip("no such turn yet")
	}
	return rapid.SampledFrom(turns).Draw(rt, "turn")
}

// settleTurn settles a turn by the tokens of each class, which the hold covers. The whole hold is charged if the app
// has left and there is no receipt.
func (m *purse) settleTurn(rt *rapid.T, h *modelHold, outcome string, whole bool) {
	var used classes
	in, out := h.turn.in, h.turn.out
	for i := range used {
		left := &in
		if i == 2 || i == 5 {
			left = &out
		}
		used[i] = rapid.Int64Range(0, *left).Draw(rt, "tokens")
		*left -= used[i]
	}
	charge := used.price()
	if whole {
		charge = h.Amount
	}
	m.settle(rt, h, charge, credit.Call{Model: "voice", Kind: "realtime", Outcome: outcome, Estimated: whole,
		TextIn: used[0], TextCached: used[1], TextOut: used[2], AudioIn: used[3], AudioCached: used[4], AudioOut: used[5]})
}
