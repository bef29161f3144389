package wire

// MaxPrice is the highest price in micro-USD per million tokens, MaxTokens the most that a call counts of one class.
const (
	MaxPrice  = 1_000_000_000
	MaxTokens = 100_000_000
)

// Usage counts the tokens of a call. Cached and CacheWrite are parts of In; reasoning is a part of Out.
type Usage struct{ In, Cached, CacheWrite, Out int64 }

// Prices are micro-USD per million tokens of each class, none above MaxPrice.
type Prices struct{ In, Cached, CacheWrite, Out int64 }

// Of returns the price of a call's usage or of a sum of many, in micro-USD, rounded up once. It does not overflow below
// 9 * 10^15 tokens: those of 90 million calls with MaxTokens each.
func (p Prices) Of(u Usage) (price int64) {
	var rest int64
	for _, c := range [...]struct{ tokens, price int64 }{
		{u.In - u.Cached - u.CacheWrite, p.In}, {u.Cached, p.Cached}, {u.CacheWrite, p.CacheWrite}, {u.Out, p.Out},
	} {
		price += c.tokens / million * c.price
		rest += c.tokens % million * c.price
	}
	return price + ceilMillion(rest)
}

// Bound returns the highest price of a call with so many tokens, whichever of them the provider caches.
func (p Prices) Bound(in, out int64) int64 {
	return ceilMillion(in*p.dearestIn() + out*p.Out)
}

// Affords returns how many tokens of output an amount covers beside the input, or -1 if it does not cover the input.
func (p Prices) Affords(amount, in int64) int64 {
	left := min(amount, MaxPrice*1000)*1_000_000 - in*p.dearestIn()
	switch {
	case left < 0:
		return -1
	case p.Out == 0:
		return MaxTokens
	}
	return min(left/p.Out, MaxTokens)
}

// Free reports whether no token costs anything.
func (p Prices) Free() bool { return p == Prices{} }

func (p Prices) dearestIn() int64 { return max(p.In, p.Cached, p.CacheWrite) }

const million = 1_000_000

func ceilMillion(n int64) int64 { return (n + million - 1) / million }
