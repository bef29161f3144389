package wire

import "github.com/go-json-experiment/json/jsontext"

// RealtimeUsage counts the tokens of realtime answers. The classes do not overlap.
type RealtimeUsage struct{ TextIn, TextCached, TextOut, AudioIn, AudioCached, AudioOut int64 }

// Add adds the counts of v.
func (u *RealtimeUsage) Add(v RealtimeUsage) {
	u.TextIn, u.TextCached, u.TextOut = u.TextIn+v.TextIn, u.TextCached+v.TextCached, u.TextOut+v.TextOut
	u.AudioIn, u.AudioCached, u.AudioOut = u.AudioIn+v.AudioIn, u.AudioCached+v.AudioCached, u.AudioOut+v.AudioOut
}

// RealtimePrices are in micro-USD per million tokens of each class, at most MaxPrice.
type RealtimePrices struct{ TextIn, TextCached, TextOut, AudioIn, AudioCached, AudioOut int64 }

// Of returns the price of the usage of an answer, in micro-USD. It rounds up once.
func (p RealtimePrices) Of(u RealtimeUsage) (price int64) {
	var rest int64
	for _, c := range [...]struct{ tokens, price int64 }{
		{u.TextIn, p.TextIn}, {u.TextCached, p.TextCached}, {u.TextOut, p.TextOut},
		{u.AudioIn, p.AudioIn}, {u.AudioCached, p.AudioCached}, {u.AudioOut, p.AudioOut},
	} {
		price += c.tokens / million * c.price
		rest += c.tokens % million * c.price
	}
	return price + ceilMillion(rest)
}

// Bound returns the maximum price of an answer, whatever classes its tokens belong to.
func (p RealtimePrices) Bound(in, out int64) int64 {
	return ceilMillion(in*max(p.TextIn, p.TextCached, p.AudioIn, p.AudioCached) + out*max(p.TextOut, p.AudioOut))
}

// RealtimeReceipt is the usage that a provider reported for an answer.
type RealtimeReceipt struct {
	Usage RealtimeUsage
	Seen  bool
	// Malformed is set for an impossible report, which is treated as missing.
	Malformed bool
}

// realtimeReceipt parses a report. Tokens that the report assigns to no class count as sound, which costs more. Those
// of pictures, which apps cannot send, count as text, whose price is the nearest.
func realtimeReceipt(v jsontext.Value, most int64) (r RealtimeReceipt) {
	if v.Kind() == 'n' {
		return r
	}
	in, out, cached := classes{-1, 0, 0, 0}, classes{-1, 0, 0, 0}, classes{}
	c := counts{most: most}
	c.object(v, func(name string, v jsontext.Value) {
		switch name {
		case "input_tokens":
			c.count(&in.total, v)
		case "output_tokens":
			c.count(&out.total, v)
		case "input_token_details", "input_tokens_details":
			c.classes(v, &in, &cached)
		case "output_token_details", "output_tokens_details":
			c.classes(v, &out, &classes{})
		}
	})
	if !c.bad && (in.total < 0 || out.total < 0) {
		return r // incomplete
	}
	if c.bad || !in.adds() || !out.adds() || cached.total > in.total || !cached.adds() {
		return RealtimeReceipt{Malformed: true}
	}
	in.text, cached.text = in.text+in.image, cached.text+cached.image
	in.audio += in.rest()
	out.audio += out.rest()
	if in.audio == 0 {
		cached.text += cached.rest()
	}
	if cached.text > in.text || cached.audio > in.audio {
		return RealtimeReceipt{Malformed: true}
	}
	r.Seen = true
	r.Usage = RealtimeUsage{TextIn: in.text - cached.text, TextCached: cached.text, TextOut: out.text,
		AudioIn: in.audio - cached.audio, AudioCached: cached.audio, AudioOut: out.audio}
	return r
}

// classes are the parts of a count.
type classes struct{ total, text, audio, image int64 }

// rest returns the tokens that belong to neither text nor sound.
func (c classes) rest() int64 { return c.total - c.text - c.audio }

// adds reports whether the parts are not larger than the total.
func (c classes) adds() bool { return c.text+c.audio+c.image <= c.total }

func (c *counts) object(v jsontext.Value, f func(name string, v jsontext.Value)) {
	switch v.Kind() {
	case 'n':
	case '{':
		err := each(v, func(name string, v jsontext.Value) error {
			f(name, v)
			return nil
		}, lenient...)
		c.bad = c.bad || err != nil
	default:
		c.bad = true
	}
}

// classes parses the details of a count, and those of its cached part.
func (c *counts) classes(v jsontext.Value, into, cached *classes) {
	c.object(v, func(name string, v jsontext.Value) {
		switch name {
		case "text_tokens":
			c.count(&into.text, v)
		case "audio_tokens":
			c.count(&into.audio, v)
		case "image_tokens":
			c.count(&into.image, v)
		case "cached_tokens":
			c.count(&cached.total, v)
		case "cached_tokens_details":
			c.classes(v, cached, &classes{})
		}
	})
}
