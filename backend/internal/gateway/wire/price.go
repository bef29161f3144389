package wire

// MaxPrice is the highest price in micro-USD per million tokens. With it and MaxTokens no sum overflows an int64.
const (
	MaxPrice  = 1_000_000_000
	MaxTokens = 100_000_000
)

// Usage counts the tokens of a call. Cached and CacheWrite are parts of In; reasoning is a part of Out.
type Usage struct{ In, Cached, CacheWrite, Out int64 }

// Prices are micro-USD per million tokens of each class, none above MaxPrice.
type Prices struct{ In, Cached, CacheWrite, Out int64 }

// Of returns the price of a usage whose counts are at most MaxTokens, in micro-USD, rounded up once.
func (p Prices) Of(u Usage) int64 {
	sum := (u.In-u.Cached-u.CacheWrite)*p.In + u.Cached*p.Cached + u.CacheWrite*p.CacheWrite + u.Out*p.Out
	return ceilMillion(sum)
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

func ceilMillion(n int64) int64 { return (n + 999_999) / 1_000_000 }
