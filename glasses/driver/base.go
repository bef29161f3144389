package driver

import (
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
)

// Base is what every Driver has: a time, steps that are due later, and output. The zero value is ready for use.
type Base struct {
	// Now is the latest time, and Timers are the steps.
	Now    int64
	Timers Timers
	outs   []Out
}

// Take implements Driver.
func (b *Base) Take() []Out {
	outs := b.outs
	b.outs = nil
	return outs
}

// Next implements Driver.
func (b *Base) Next() (at int64, ok bool) { return b.Timers.Next() }

// Tick implements Driver.
func (b *Base) Tick(now int64) {
	for {
		at, f := b.Timers.Pop(now)
		if f == nil {
			break
		}
		b.Now = max(b.Now, at)
		f()
	}
	b.Now = max(b.Now, now)
}

// SetPanel implements Driver for glasses whose panels are all alike.
func (b *Base) SetPanel(Panel) {}

// After adds a step that is due in the given ms.
func (b *Base) After(ms int64, f func()) *Timer { return b.Timers.Add(b.Now+ms, f) }

// Write outputs a value to write to the peripheral of a link.
func (b *Base) Write(link string, data []byte) {
	b.outs = append(b.outs, Out{Write: &Write{Link: link, Data: data}})
}

// Answer outputs the answer to an Ask.
func (b *Base) Answer(ask int, m device.Material, err *glasses.Error) {
	b.outs = append(b.outs, Out{Answer: &Answer{Ask: ask, Material: m, Error: err}})
}

// Sense outputs what the glasses noticed.
func (b *Base) Sense(typ string, payload any) {
	b.outs = append(b.outs, Out{Sense: &Sense{Type: typ, Payload: payload}})
}

// Note outputs a line for the log.
func (b *Base) Note(text string) { b.outs = append(b.outs, Out{Note: text}) }

// Info outputs what the glasses say about a link.
func (b *Base) Info(i Info) { b.outs = append(b.outs, Out{Info: &i}) }

// Drop outputs why a link must end, and asks for its end. problem is a code of this package.
func (b *Base) Drop(link, problem, why string) {
	b.Note(why)
	b.outs = append(b.outs, Out{Drop: link, Problem: problem})
}
