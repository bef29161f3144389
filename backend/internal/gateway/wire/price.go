package wire

// MaxPrice is the highest price in micro-USD per million tokens. MaxTokens is the maximum number of tokens of one
// class in a call.
const (
	MaxPrice  = 1_000_000_000
	MaxTokens = 100_000_000
)

// Usage counts the tokens of a call. Cached and CacheWrite are included in In; reasoning is included in Out.
type Usage struct{ In, Cached, CacheWrite, Out int64 }

// Prices are in micro-USD per million tokens of each class, at most MaxPrice.
type Prices struct{ In, Cached, CacheWrite, Out int64 }

// Of returns the price of the usage of one or more calls, in micro-USD. It rounds up once. It does not overflow below 9
// * 10^15 tokens, which is the usage of 90 million calls with MaxTokens each.
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

// Bound returns the maximum price of a call with this many tokens, however many of them the provider caches.
func (p Prices) Bound(in, out int64) int64 {
	return ceilMillion(in*p.dearestIn() + out*p.Out)
}

// Affords returns the number of output tokens that an amount covers in addition to the input, or -1 if it does not
// cover the input.
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

// Free reports whether all prices are 0.
func (p Prices) Free() bool { return p == Prices{} }

func (p Prices) dearestIn() int64 { return max(p.In, p.Cached, p.CacheWrite) }

const million = 1_000_000

func ceilMillion(n int64) int64 { return (n + million - 1) / million }
